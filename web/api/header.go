package api

import (
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"fairlane/control/admit"
)

const (
	headerKey  = "Idempotency-Key"
	headerUser = "X-Fairlane-User"
)

// idempotencyKey reads the key, quoted as a structured-field string or bare.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values(headerKey)
	if len(values) != 1 {
		return "", malformedf(headerKey, "this header is required, once")
	}
	key := strings.TrimSpace(values[0])
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquote(key); !ok {
			return "", malformedf(headerKey, "the quotation marks do not match, or the text after a backslash is not one of its two")
		}
	} else if strings.ContainsAny(key, " \"\\") {
		return "", malformedf(headerKey, "a bare key has no spaces, quotation marks or backslashes")
	}
	for _, b := range []byte(key) {
		if b < 0x20 || b > 0x7e {
			return "", malformedf(headerKey, "only printable ASCII characters are allowed")
		}
	}
	if len(key) < 1 || len(key) > admit.MaxKey {
		return "", malformedf(headerKey, "must have 1 to %d characters, has %d", admit.MaxKey, len(key))
	}
	return key, nil
}

func unquote(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	var out strings.Builder
	for inner := s[1 : len(s)-1]; inner != ""; inner = inner[1:] {
		switch inner[0] {
		case '"':
			return "", false
		case '\\':
			if len(inner) < 2 || (inner[1] != '"' && inner[1] != '\\') {
				return "", false
			}
			inner = inner[1:]
		}
		out.WriteByte(inner[0])
	}
	return out.String(), true
}

// userName reads the tenant's id of its user; "" where it is left out and not required.
func userName(h http.Header, required bool) (string, error) {
	values := h.Values(headerUser)
	if len(values) == 0 && !required {
		return "", nil
	}
	if len(values) != 1 || values[0] == "" {
		return "", malformedf(headerUser, "this header is required, once")
	}
	name := values[0]
	switch n := utf8.RuneCountInString(name); {
	case !admit.Printable(name, false):
		return "", malformedf(headerUser, "has control or directional characters, or is not valid UTF-8")
	case n > admit.MaxUserName:
		return "", malformedf(headerUser, "may have %d characters at most, has %d", admit.MaxUserName, n)
	}
	return name, nil
}

var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// trace returns a well-formed W3C traceparent; W3C says to ignore any other.
func trace(h http.Header) string {
	if value := h.Get("traceparent"); traceParent.MatchString(value) && !strings.HasPrefix(value, "ff") {
		return value
	}
	return ""
}
