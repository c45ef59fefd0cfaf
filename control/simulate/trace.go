package simulate

import (
	"fmt"
	"io"
	"strconv"

	"fairlane/control"
	"fairlane/policy"
)

// Bounds of a trace.
const (
	MaxLines       = 5_000_000        // 32 bytes each are kept
	MaxAtSeconds   = 366 * 24 * 3600  // arrivals
	MaxDuration    = 7 * 24 * 3600    // seconds of one task's work
	MaxNameBytes   = 128              // of a tenant, a user, a model
	MaxLineBytes   = 1024             // a name of each kind, two numbers, and room to spare
	MaxNames       = 1_000_000        // different users
	MaxTenants     = 100_000          // different tenants
	maxModels      = 10_000           // different models
	secondsInMicro = int64(1_000_000) // the clock of a simulation counts microseconds
)

// Header is the first line of a trace file.
const Header = "at_s,tenant,user,model,duration_s,kind"

// fields are the columns of a trace, in order.
var fields = [...]string{"at_s", "tenant", "user", "model", "duration_s", "kind"}

// Arrival is one task of a trace. Times are in microseconds; the rest are places in the trace's lists.
type Arrival struct {
	At, Duration        int64
	Tenant, User, Model int32
}

// TraceUser is a user of a tenant.
type TraceUser struct {
	Tenant int32
	Name   string
}

// TraceModel is a model as a trace names it, with the line on which it came first.
type TraceModel struct {
	Code string
	Kind control.Kind
	Line int // 0: the trace was not read from a file
}

// Trace is a list of arrivals in order of time.
type Trace struct {
	Tenants  []string // in order of arrival
	Users    []TraceUser
	Models   []TraceModel
	Arrivals []Arrival
}

// LineError says what is wrong with a line of a trace.
type LineError struct {
	Line    int    // from 1, the header is line 1; 0: the file as a whole
	Field   string // "": the line as a whole
	Problem string // with the limit, where there is one
}

func (e *LineError) Error() string {
	text := "trace"
	if e.Line > 0 {
		text += ": line " + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Problem
}

// Check tells whether every model of the trace is in the policy, and of the same kind there.
func (t *Trace) Check(doc *policy.Document) error {
	for _, use := range t.Models {
		m, ok := doc.Model(use.Code)
		switch {
		case !ok:
			return &LineError{use.Line, "model", fmt.Sprintf("%q is not a model of the policy, which has %d", use.Code, len(doc.Models))}
		case m.Kind != string(use.Kind):
			return &LineError{use.Line, "kind", fmt.Sprintf("%s, but the policy says that the model %q makes %s", use.Kind, use.Code, m.Kind)}
		}
	}
	return nil
}

// Horizon is the time of the last arrival in microseconds.
func (t *Trace) Horizon() int64 {
	if len(t.Arrivals) == 0 {
		return 0
	}
	return t.Arrivals[len(t.Arrivals)-1].At
}

// Write writes the trace as a file that ReadTrace takes.
func (t *Trace) Write(w io.Writer) error {
	line := append(make([]byte, 0, 256), Header+"\n"...)
	for i := range t.Arrivals {
		a := &t.Arrivals[i]
		line = appendSeconds(line, a.At)
		for _, s := range [...]string{t.Tenants[a.Tenant], t.Users[a.User].Name, t.Models[a.Model].Code} {
			line = append(append(line, ','), s...)
		}
		line = appendSeconds(append(line, ','), a.Duration)
		line = append(append(append(line, ','), t.Models[a.Model].Kind...), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	return nil
}

// appendSeconds writes microseconds as seconds with up to six decimals, none where they are zero.
func appendSeconds(to []byte, micro int64) []byte {
	to = strconv.AppendInt(to, micro/secondsInMicro, 10)
	rest := micro % secondsInMicro
	if rest == 0 {
		return to
	}
	digits := strconv.AppendInt(nil, secondsInMicro+rest, 10)[1:]
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return append(append(to, '.'), digits...)
}
