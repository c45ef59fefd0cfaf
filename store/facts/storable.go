package facts

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
)

// Bounds of what is kept of a provider's answer, in bytes.
const (
	maxCode    = 100
	maxMessage = 1000
	maxAnswer  = 4096
	maxResult  = 64 * 1024
	maxNesting = 32
)

// storableText makes text that PostgreSQL accepts: valid UTF-8 without NUL, at most limit bytes.
func storableText(s string, limit int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// storableJSON makes a document that jsonb accepts out of whatever came: "" for none; text without
// NUL; numbers that a float can hold. What is no JSON, too large or too deep is told by its size only.
func storableJSON(raw json.RawMessage) string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return ""
	}
	unreadable := `{"unreadable_bytes":` + strconv.Itoa(len(raw)) + `}`
	if len(raw) > maxResult {
		return unreadable
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || !ended(d) {
		return unreadable
	}
	v, ok := storableValue(v, 0)
	if !ok {
		return unreadable
	}
	out, err := json.Marshal(v)
	if err != nil {
		return unreadable
	}
	return string(out)
}

func ended(d *json.Decoder) bool {
	_, err := d.Token()
	return err == io.EOF
}

func storableValue(v any, depth int) (any, bool) {
	if depth > maxNesting {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return storableText(v, maxResult), true
	case json.Number:
		f, err := v.Float64()
		if strings.ContainsAny(string(v), "eE") { // an exponent may be beyond what a numeric holds
			return f, err == nil && !math.IsInf(f, 0)
		}
		return v, err == nil && len(v) <= maxCode
	case []any:
		for i := range v {
			var ok bool
			if v[i], ok = storableValue(v[i], depth+1); !ok {
				return nil, false
			}
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, x := range v {
			x, ok := storableValue(x, depth+1)
			if !ok {
				return nil, false
			}
			clean[storableText(k, maxResult)] = x
		}
		return clean, true
	}
	return v, true
}
