// Package session is how operators prove who they are: passwords, sign-in and sign-out, and the session
// of each request. A session lives in PostgreSQL under the hash of its token, ends after a time without
// use and after a time in any case, and can be ended from outside at once. The API tokens of platform
// services are not here.
//
// Handlers goes into the route table under session.form, session.start and session.end; Load is the
// engine's session step.
package session
