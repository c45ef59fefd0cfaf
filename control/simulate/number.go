package simulate

import (
	"fmt"
	"math"
	"strconv"
)

// parseSeconds reads seconds as microseconds: a plain decimal number, or one with an exponent, from 0 to
// limit. The problem is "" when it could be read.
func parseSeconds(text []byte, limit int64) (micro int64, problem string) {
	whole, i := int64(0), 0
	for ; i < len(text) && i < 10 && text[i] >= '0' && text[i] <= '9'; i++ {
		whole = whole*10 + int64(text[i]-'0')
	}
	switch {
	case i == len(text) && i > 0 && i < 10:
		micro = whole * secondsInMicro
	case i > 0 && i < 10 && text[i] == '.':
		part, digits := int64(0), 0
		for i++; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
			if digits < 6 { // what is below a microsecond is cut
				part, digits = part*10+int64(text[i]-'0'), digits+1
			}
		}
		if i < len(text) || digits == 0 {
			return slowSeconds(text, limit)
		}
		for ; digits < 6; digits++ {
			part *= 10
		}
		micro = whole*secondsInMicro + part
	default:
		return slowSeconds(text, limit)
	}
	if micro > limit*secondsInMicro {
		return 0, fmt.Sprintf("%s is more than %d s", shown(text), limit)
	}
	return micro, ""
}

// slowSeconds reads what is written in another form, or says what is wrong with it.
func slowSeconds(text []byte, limit int64) (micro int64, problem string) {
	if len(text) == 0 {
		return 0, "empty; a number of seconds is needed"
	}
	number := len(text) <= 40
	for _, c := range text {
		number = number && (c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-')
	}
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) && !number:
		return 0, fmt.Sprintf("%s is not a finite number", shown(text))
	case !number || err != nil && !math.IsInf(f, 0):
		return 0, fmt.Sprintf("%q is not a number of seconds", shown(text))
	case f < 0 || math.Signbit(f):
		return 0, fmt.Sprintf("%s is negative, at least 0 s are needed", shown(text))
	case f > float64(limit):
		return 0, fmt.Sprintf("%s is more than %d s", shown(text), limit)
	}
	return int64(f * float64(secondsInMicro)), ""
}
