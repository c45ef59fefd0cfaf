// Package layout is the shell of every page: top bar, navigation, banners, switches of language and
// theme. A page wraps its content in Page and names itself by a Head; the engine puts the Shell of the
// request into its context before the handler runs.
//
// On pages with a form, Head.Form makes the switches submit that form to Head.Again, so that nothing
// typed is lost; the handler behind Again shows the same form again in the new language.
package layout
