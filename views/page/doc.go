// Package page holds one .templ for each screen beside its view model. Models carry values that are ready
// to be shown or formatted; they name no word of control or policy.
package page
