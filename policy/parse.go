package policy

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fairlane/control"
)

// maxNumberText bounds what is looked at as a number; the longest int64 has 20 characters.
const maxNumberText = 40

// ParseInt reads a whole number that is not negative from text that somebody typed. Spaces around it
// are allowed, nothing else is: no sign, no separators, no exponent, no digits of other scripts. The
// answer is nil, or one broken rule for the field at path.
func ParseInt(path, text string) (int64, *control.FieldError) {
	fault := func(key string) (int64, *control.FieldError) {
		return 0, &control.FieldError{Field: path, Key: key, Args: args{"value": Printable(text, maxNumberText)}}
	}
	if !utf8.ValidString(text) {
		return fault(KeyNotANumber)
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\t' {
			return 0, &control.FieldError{Field: path, Key: KeyControlCharacters}
		}
	}
	s := strings.Trim(text, " \t")
	if s == "" {
		return 0, &control.FieldError{Field: path, Key: KeyRequired}
	}
	digits := strings.TrimPrefix(s, "-")
	if isDigits(digits) {
		if digits != s && strings.Trim(digits, "0") != "" {
			return fault(KeyNegative)
		}
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, &control.FieldError{Field: path, Key: KeyTooLarge, Args: args{"value": Printable(s, maxNumberText), "max": int64(MaxMicro)}}
		}
		return v, nil
	}
	if len(s) <= 4*maxNumberText {
		if full := strings.Map(narrow, s); full != s && looksNumeric(full) {
			return fault(KeyFullWidth)
		}
		if looksNumeric(s) {
			return fault(KeyNotWhole)
		}
	}
	return fault(KeyNotANumber)
}

// ParseBool reads a switch: true, false, on, off.
func ParseBool(path, text string) (bool, *control.FieldError) {
	switch strings.Trim(text, " \t") {
	case "true", "on":
		return true, nil
	case "false", "off":
		return false, nil
	case "":
		return false, &control.FieldError{Field: path, Key: KeyRequired}
	}
	return false, &control.FieldError{Field: path, Key: KeyNotABool, Args: args{"value": Printable(text, maxNumberText)}}
}

func isDigits(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// looksNumeric tells 1.5 and 1e3 from words, NaN and infinities.
func looksNumeric(s string) bool {
	if strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' }) < 0 {
		return false
	}
	for _, r := range s {
		if (r < '0' || r > '9') && !strings.ContainsRune("+-.eE", r) {
			return false
		}
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// narrow turns full-width and other scripts' decimal digits, and the marks beside them, into ASCII.
func narrow(r rune) rune {
	switch {
	case r >= '！' && r <= '～':
		return r - '！' + '!'
	case r > unicode.MaxASCII && unicode.Is(unicode.Nd, r):
		return '0' // which digit it is does not matter: it is refused
	case r == '−':
		return '-'
	}
	return r
}
