package views

import "strings"

// LocalPath returns a path on this host out of what a form or an address asks for, and "/" for everything
// that could lead elsewhere.
func LocalPath(asked string) string {
	if len(asked) > 2000 || !strings.HasPrefix(asked, "/") || strings.HasPrefix(asked, "//") ||
		strings.ContainsAny(asked, "\\\r\n\t") || strings.HasPrefix(asked, "/banners") {
		return "/"
	}
	return asked
}
