package simulate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"fairlane/control"
	"fairlane/control/admit"
)

// ReadTrace reads a trace file: the header, then one task a line, in order of time. A byte order mark and
// CRLF are taken; quotes are not. Every error of the text is a *LineError; an error of r is passed on.
func ReadTrace(r io.Reader) (*Trace, error) {
	in := &reader{
		Trace: &Trace{}, lines: bufio.NewReaderSize(r, 1<<16),
		tenants: map[string]int32{}, users: map[userKey]int32{}, models: map[modelKey]int32{},
	}
	if err := in.header(); err != nil {
		return nil, err
	}
	for {
		text, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := in.add(text); err != nil {
			return nil, err
		}
	}
	if len(in.Arrivals) == 0 {
		return nil, in.fault("", "the file ends after its header: at least one task is needed")
	}
	return in.Trace, nil
}

type userKey struct {
	tenant int32
	name   string
}

type modelKey struct {
	code string
	kind control.Kind
}

type reader struct {
	*Trace
	lines   *bufio.Reader
	line    int
	last    int64
	tenants map[string]int32
	users   map[userKey]int32
	models  map[modelKey]int32
	columns [len(fields)][]byte
}

func (in *reader) fault(field, format string, args ...any) error {
	return &LineError{in.line, field, fmt.Sprintf(format, args...)}
}

// next returns the next line without its end, valid until the next call; io.EOF after the last.
func (in *reader) next() ([]byte, error) {
	text, err := in.lines.ReadSlice('\n')
	in.line++
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(text) > MaxLineBytes+2:
		return nil, in.fault("", "longer than %d bytes", MaxLineBytes)
	case err != nil && (!errors.Is(err, io.EOF) || len(text) == 0):
		in.line--
		return nil, err
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	return bytes.TrimSuffix(text, []byte("\r")), nil
}

func (in *reader) header() error {
	text, err := in.next()
	if errors.Is(err, io.EOF) {
		return in.fault("", "the file is empty: the header %q and at least one task are needed", Header)
	}
	if err != nil {
		return err
	}
	if text = bytes.TrimPrefix(text, []byte("\ufeff")); string(text) != Header {
		return in.fault("", "the header must be %q, this is %q", Header, shown(text))
	}
	return nil
}

func (in *reader) add(text []byte) error {
	if len(in.Arrivals) >= MaxLines {
		return in.fault("", "more than %d tasks", MaxLines)
	}
	if err := in.split(text); err != nil {
		return err
	}
	a, err := in.numbers()
	if err != nil {
		return err
	}
	if a.Tenant, err = in.tenant(in.columns[1]); err != nil {
		return err
	}
	if a.User, err = in.user(a.Tenant, in.columns[2]); err != nil {
		return err
	}
	if a.Model, err = in.model(in.columns[3], in.columns[5]); err != nil {
		return err
	}
	in.last = a.At
	if len(in.Arrivals) == cap(in.Arrivals) { // doubling would leave half of a large trace unused
		in.Arrivals = slices.Grow(in.Arrivals, max(1024, len(in.Arrivals)/4))
	}
	in.Arrivals = append(in.Arrivals, a)
	return nil
}

func (in *reader) split(text []byte) error {
	rest, n := text, 0
	for {
		at := bytes.IndexByte(rest, ',')
		if n < len(fields) {
			if at < 0 {
				in.columns[n] = rest
			} else {
				in.columns[n] = rest[:at]
			}
		}
		n++
		if at < 0 {
			break
		}
		rest = rest[at+1:]
	}
	switch {
	case len(text) == 0:
		return in.fault("", "empty; %d fields are needed: %s", len(fields), Header)
	case n != len(fields):
		return in.fault("", "%d fields, %d are needed: %s", n, len(fields), Header)
	}
	return nil
}

func (in *reader) numbers() (a Arrival, err error) {
	at, problem := parseSeconds(in.columns[0], MaxAtSeconds)
	if problem != "" {
		return a, in.fault("at_s", "%s", problem)
	}
	if at < in.last {
		return a, in.fault("at_s", "%s is before %s of the line before: lines must be in order of time", shown(in.columns[0]), appendSeconds(nil, in.last))
	}
	took, problem := parseSeconds(in.columns[4], MaxDuration)
	if problem != "" {
		return a, in.fault("duration_s", "%s", problem)
	}
	if took == 0 {
		return a, in.fault("duration_s", "%s is not above 0", shown(in.columns[4]))
	}
	a.At, a.Duration = at, took
	return a, nil
}

func (in *reader) tenant(text []byte) (int32, error) {
	if at, ok := in.tenants[string(text)]; ok {
		return at, nil
	}
	if err := in.name("tenant", text); err != nil {
		return 0, err
	}
	if len(in.Tenants) >= MaxTenants {
		return 0, in.fault("tenant", "more than %d different ones", MaxTenants)
	}
	at, name := int32(len(in.Tenants)), string(text) //nolint:gosec // at most MaxTenants
	in.Tenants, in.tenants[name] = append(in.Tenants, name), at
	return at, nil
}

func (in *reader) user(tenant int32, text []byte) (int32, error) {
	if at, ok := in.users[userKey{tenant, string(text)}]; ok {
		return at, nil
	}
	if err := in.name("user", text); err != nil {
		return 0, err
	}
	if len(in.Users) >= MaxNames {
		return 0, in.fault("user", "more than %d different ones", MaxNames)
	}
	at, name := int32(len(in.Users)), string(text) //nolint:gosec // at most MaxNames
	in.Users, in.users[userKey{tenant, name}] = append(in.Users, TraceUser{tenant, name}), at
	return at, nil
}

func (in *reader) model(text, kind []byte) (int32, error) {
	var k control.Kind
	switch string(kind) {
	case string(control.KindImage):
		k = control.KindImage
	case string(control.KindVideo):
		k = control.KindVideo
	default:
		return 0, in.fault("kind", "%q is neither %s nor %s", shown(kind), control.KindImage, control.KindVideo)
	}
	if at, ok := in.models[modelKey{string(text), k}]; ok {
		return at, nil
	}
	if err := in.name("model", text); err != nil {
		return 0, err
	}
	if len(in.Models) >= maxModels {
		return 0, in.fault("model", "more than %d different ones", maxModels)
	}
	at, code := int32(len(in.Models)), string(text) //nolint:gosec // at most maxModels
	in.Models, in.models[modelKey{code, k}] = append(in.Models, TraceModel{code, k, in.line}), at
	return at, nil
}

func (in *reader) name(field string, text []byte) error {
	switch {
	case len(text) == 0:
		return in.fault(field, "empty")
	case len(text) > MaxNameBytes:
		return in.fault(field, "%d bytes, at most %d are taken", len(text), MaxNameBytes)
	case bytes.IndexByte(text, '"') >= 0:
		return in.fault(field, "quotes are not taken")
	case !admit.Printable(string(text), false):
		return in.fault(field, "control characters or bytes that are not UTF-8")
	}
	return nil
}

// shown is what an error repeats of a file.
func shown(text []byte) string {
	const most = 60
	s := strings.ToValidUTF8(string(text[:min(len(text), most)]), "?")
	if len(text) > most {
		s += "…"
	}
	return s
}
