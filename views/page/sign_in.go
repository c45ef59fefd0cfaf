package page

import "fairlane/views"

// SignIn is the sign-in form with what was typed; the password is never shown again.
type SignIn struct {
	Login         string
	Next          string
	LoginError    views.Message
	PasswordError views.Message
	Failure       views.Message
}
