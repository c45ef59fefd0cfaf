// Package views is what every page shares: the reader of a request (language, theme, zone, nonce), the
// message catalogue in Chinese and English, and the formatting of numbers, times, durations and money.
// It knows nothing of control, policy or audit: pages get view models, filled by the rooms of web.
//
// views/layout holds the shell, views/part the pieces, views/page one .templ per screen beside its model.
// Pages are written with Render, which renders into a buffer with the request's own context first.
package views
