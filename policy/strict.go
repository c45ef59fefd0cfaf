package policy

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"fairlane/control"
)

const maxDepth = 16

// inspect walks the JSON text beside the declaration of Document and names what does not fit.
// encoding/json alone would take the last of doubled keys, match keys in any case, and leave a switch
// that is missing at false.
func inspect(data []byte) []control.FieldError {
	f := &faults{}
	if !utf8.Valid(data) {
		f.add("document", KeyBadText, args{"offset": int64(firstInvalid(data))})
		return f.all()
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	in := &inspector{faults: f, dec: dec, strict: newestSchema(data), shapes: map[reflect.Type]*shape{}}
	err := in.value("", reflect.TypeFor[Document](), 0)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			f.add("document", KeyTrailingData, args{"offset": dec.InputOffset()})
		}
	} else if !errors.Is(err, errStop) {
		f.add("document", KeyBadJSON, args{"offset": dec.InputOffset()})
	}
	return f.all()
}

var errStop = errors.New("stop")

// newestSchema tells whether every key has to be there; older documents lack what came later.
func newestSchema(data []byte) bool {
	var head struct {
		Schema json.Number `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return true
	}
	n, err := strconv.Atoi(head.Schema.String())
	return err != nil || n >= SchemaVersion || n < 1
}

type inspector struct {
	*faults
	dec    *json.Decoder
	strict bool
	shapes map[reflect.Type]*shape
}

// shape is what a declaration says of an object's keys.
type shape struct {
	types    map[string]reflect.Type
	required []string
}

func (in *inspector) shape(t reflect.Type) *shape {
	if s, ok := in.shapes[t]; ok {
		return s
	}
	s := &shape{types: make(map[string]reflect.Type, t.NumField())}
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		s.types[name] = t.Field(i).Type
		if option != "omitempty" {
			s.required = append(s.required, name)
		}
	}
	in.shapes[t] = s
	return s
}

// value reads one value that should be of type t.
func (in *inspector) value(path string, t reflect.Type, depth int) error {
	if depth > maxDepth {
		in.add(path, KeyTooDeep, args{"max": int64(maxDepth)})
		return errStop
	}
	token, err := in.dec.Token()
	if err != nil {
		return err
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := kindOf(t)
	switch v := token.(type) {
	case json.Delim:
		if (v == '{') != (want == "object") || (v == '[') != (want == "list") {
			in.add(path, KeyWrongType, args{"expected": want})
			return in.skip(depth)
		}
		if v == '{' {
			return in.object(path, t, depth)
		}
		for i := 0; in.dec.More(); i++ {
			if err := in.value(path+"["+strconv.Itoa(i)+"]", t.Elem(), depth+1); err != nil {
				return err
			}
		}
		_, err := in.dec.Token()
		return err
	case nil:
		in.add(path, KeyNull, nil)
	case string:
		if want == "id" {
			if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v)); err != nil || len(v) != 36 {
				in.add(path, KeyWrongType, args{"expected": want})
			}
		} else if want != "text" {
			in.add(path, KeyWrongType, args{"expected": want})
		}
	case bool:
		if want != "switch" {
			in.add(path, KeyWrongType, args{"expected": want})
		}
	case json.Number:
		in.number(path, v.String(), t, want)
	}
	return nil
}

func (in *inspector) number(path, text string, t reflect.Type, want string) {
	switch want {
	case "whole":
		if _, err := strconv.ParseInt(text, 10, t.Bits()); err == nil {
			return
		}
		if strings.ContainsAny(text, ".eE") {
			in.add(path, KeyNotWhole, args{"value": Printable(text, maxNumberText)})
		} else {
			in.add(path, KeyTooLarge, args{"value": Printable(text, maxNumberText), "max": int64(MaxMicro)})
		}
	case "number":
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			in.add(path, KeyTooLarge, args{"value": Printable(text, maxNumberText), "max": int64(MaxMicro)})
		}
	default:
		in.add(path, KeyWrongType, args{"expected": want})
	}
}

func (in *inspector) object(path string, t reflect.Type, depth int) error {
	shape := in.shape(t)
	seen := make(map[string]bool, len(shape.types))
	for in.dec.More() {
		token, err := in.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		place := strings.TrimPrefix(path+"."+Printable(key, 80), ".")
		field, known := shape.types[key]
		switch {
		case seen[key]:
			in.add(place, KeyDuplicateKey, nil)
			known = false
		case !known:
			in.add(place, KeyUnknownKey, nil)
		}
		seen[key] = true
		if !known {
			err = in.next(depth + 1)
		} else {
			err = in.value(place, field, depth+1)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range shape.required {
		if in.strict && !seen[name] {
			in.add(strings.TrimPrefix(path+"."+name, "."), KeyMissing, nil)
		}
	}
	_, err := in.dec.Token()
	return err
}

// next reads over one value of any kind, skip over the rest of an object or list.
func (in *inspector) next(depth int) error {
	token, err := in.dec.Token()
	if err != nil {
		return err
	}
	if d, ok := token.(json.Delim); ok && (d == '{' || d == '[') {
		return in.skip(depth)
	}
	return nil
}

func (in *inspector) skip(depth int) error {
	for open := 1; open > 0; {
		token, err := in.dec.Token()
		if err != nil {
			return err
		}
		if d, ok := token.(json.Delim); ok {
			if d == '{' || d == '[' {
				open++
			} else {
				open--
			}
			if depth+open > maxDepth {
				in.add("document", KeyTooDeep, args{"max": int64(maxDepth)})
				return errStop
			}
		}
	}
	return nil
}

// kindOf says in a word what JSON a type is written as.
func kindOf(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Array:
		return "id" // uuid.UUID
	case t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "switch"
	case t.Kind() == reflect.Float64:
		return "number"
	}
	return "whole"
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(data)
}
