package provider

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxRaw is how much of a raw answer is kept, in bytes.
const MaxRaw = 4096

// MaxRetryAfter bounds what a provider can ask for.
const MaxRetryAfter = time.Hour

// RetryAfter reads the header of that name, in seconds or as a date (taken against the answer's own
// Date where there is one, so that a wrong clock there does no harm). 0 when there is none that can
// be read; never negative, never above MaxRetryAfter.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || seconds <= 0 {
			return 0
		}
		return time.Duration(min(seconds, MaxRetryAfter.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}

// Redact cuts secrets out of a raw answer and bounds it to MaxRaw.
func Redact(raw string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= 4 {
			raw = strings.ReplaceAll(raw, secret, "[redacted]")
		}
	}
	return Clean(raw, MaxRaw)
}

// Clean makes foreign text fit to be stored and shown: valid UTF-8, no control characters but line
// breaks and tabs, at most limit bytes.
func Clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if (r < 0x20 && r != '\n' && r != '\t') || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	text = text[:limit]
	for len(text) > 0 && !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}
