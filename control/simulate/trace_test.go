package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"fairlane/policy"
	"fairlane/store/storetest"
)

const twoLines = Header + "\n0,acme,mia,clip,60,VIDEO\n1.5,acme,mia,clip,0.25,VIDEO\n"

func TestTraceIsReadAndWrittenBack(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"plain":                 twoLines,
		"a byte order mark":     "\ufeff" + twoLines,
		"CRLF":                  strings.ReplaceAll(twoLines, "\n", "\r\n"),
		"no end of last line":   strings.TrimSuffix(twoLines, "\n"),
		"numbers with exponent": Header + "\n0e0,acme,mia,clip,6e1,VIDEO\n1.5,acme,mia,clip,2.5E-1,VIDEO\n",
		"many decimals":         Header + "\n0.0000001,acme,mia,clip,60.0000009,VIDEO\n1.500000,acme,mia,clip,.25,VIDEO\n",
	} {
		trace, err := ReadTrace(strings.NewReader(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out bytes.Buffer
		if err := trace.Write(&out); err != nil {
			t.Fatal(err)
		}
		if out.String() != twoLines {
			t.Errorf("%s: came back as %q", name, out.String())
		}
	}
}

func TestBadTracesAreRefusedWithLineAndField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxNameBytes+1)
	line := func(s string) string { return Header + "\n1,acme,mia,clip,60,VIDEO\n" + s + "\n" }
	for _, c := range []struct {
		name, in string
		line     int
		field    string
		says     string
	}{
		{"empty", "", 0, "", "the file is empty"},
		{"only a mark", "\ufeff", 1, "", "the header must be"},
		{"only a header", Header + "\n", 1, "", "at least one task is needed"},
		{"another header", "at,tenant,user,model,duration,kind\n", 1, "", "the header must be"},
		{"no header", "0,acme,mia,clip,60,VIDEO\n", 1, "", "the header must be"},
		{"a broken line", line("2,acme,mia"), 3, "", "3 fields, 6 are needed"},
		{"one field too many", line("2,acme,mia,clip,60,VIDEO,x"), 3, "", "7 fields, 6 are needed"},
		{"an empty line", line(""), 3, "", "empty; 6 fields are needed"},
		{"a long line", line("2," + strings.Repeat("y", 3000) + ",mia,clip,60,VIDEO"), 3, "", "longer than 1024 bytes"},
		{"an endless line", Header + "\n" + strings.Repeat("z", 200_000), 2, "", "longer than 1024 bytes"},
		{"a negative time", line("-3,acme,mia,clip,60,VIDEO"), 3, "at_s", "-3 is negative, at least 0 s"},
		{"minus zero", line("-0,acme,mia,clip,60,VIDEO"), 3, "at_s", "negative"},
		{"a negative duration", line("2,acme,mia,clip,-60,VIDEO"), 3, "duration_s", "-60 is negative"},
		{"no duration", line("2,acme,mia,clip,0,VIDEO"), 3, "duration_s", "0 is not above 0"},
		{"a tiny duration", line("2,acme,mia,clip,0.0000001,VIDEO"), 3, "duration_s", "is not above 0"},
		{"NaN", line("NaN,acme,mia,clip,60,VIDEO"), 3, "at_s", "NaN is not a finite number"},
		{"infinite", line("2,acme,mia,clip,Inf,VIDEO"), 3, "duration_s", "Inf is not a finite number"},
		{"minus infinite", line("2,acme,mia,clip,-Infinity,VIDEO"), 3, "duration_s", "is not a finite number"},
		{"beyond floats", line("2,acme,mia,clip,1e999,VIDEO"), 3, "duration_s", "more than 604800 s"},
		{"a late time", line("31622401,acme,mia,clip,60,VIDEO"), 3, "at_s", "more than 31622400 s"},
		{"a long duration", line("2,acme,mia,clip,604800.1,VIDEO"), 3, "duration_s", "more than 604800 s"},
		{"a word", line("soon,acme,mia,clip,60,VIDEO"), 3, "at_s", `"soon" is not a number`},
		{"hexadecimal", line("0x10,acme,mia,clip,60,VIDEO"), 3, "at_s", "is not a number"},
		{"underscores", line("1_0,acme,mia,clip,60,VIDEO"), 3, "at_s", "is not a number"},
		{"a space", line(" 2,acme,mia,clip,60,VIDEO"), 3, "at_s", "is not a number"},
		{"no time", line(",acme,mia,clip,60,VIDEO"), 3, "at_s", "empty"},
		{"a lone point", line("2.,acme,mia,clip,60,VIDEO"), 3, "", ""},
		{"out of order", line("0.5,acme,mia,clip,60,VIDEO"), 3, "at_s", "0.5 is before 1 of the line before"},
		{"no tenant", line("2,,mia,clip,60,VIDEO"), 3, "tenant", "empty"},
		{"a long tenant", line("2," + long + ",mia,clip,60,VIDEO"), 3, "tenant", "129 bytes, at most 128"},
		{"control characters", line("2,ac\x00me,mia,clip,60,VIDEO"), 3, "tenant", "control characters"},
		{"not UTF-8", line("2,acme,\xff,clip,60,VIDEO"), 3, "user", "not UTF-8"},
		{"turned around", line("2,acme,\u202emia,clip,60,VIDEO"), 3, "user", "control characters"},
		{"no user", line("2,acme,,clip,60,VIDEO"), 3, "user", "empty"},
		{"quotes", line(`2,acme,"mia",clip,60,VIDEO`), 3, "user", "quotes are not taken"},
		{"no model", line("2,acme,mia,,60,VIDEO"), 3, "model", "empty"},
		{"another kind", line("2,acme,mia,clip,60,AUDIO"), 3, "kind", `"AUDIO" is neither IMAGE nor VIDEO`},
		{"no kind", line("2,acme,mia,clip,60,"), 3, "kind", "neither"},
	} {
		_, err := ReadTrace(strings.NewReader(c.in))
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var at *LineError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if at.Line != c.line || at.Field != c.field || !strings.Contains(at.Error(), c.says) {
			t.Errorf("%s: line %d, field %q: %q; want line %d, field %q and %q", c.name, at.Line, at.Field, at, c.line, c.field, c.says)
		}
	}
}

func TestAnErrorOfTheReaderIsPassedOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	_, err := ReadTrace(io.MultiReader(strings.NewReader(twoLines), failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestModelsOfATraceMustBeThePolicys(t *testing.T) {
	t.Parallel()
	doc := policy.Default()
	doc.Models = []policy.Model{{Code: "clip", Kind: "VIDEO"}, {Code: "picture", Kind: "IMAGE"}}
	for _, c := range []struct{ model, kind, says string }{
		{"clip", "VIDEO", ""},
		{"picture", "IMAGE", ""},
		{"film", "VIDEO", `line 3: model: "film" is not a model of the policy, which has 2`},
		{"picture", "VIDEO", `line 3: kind: VIDEO, but the policy says that the model "picture" makes IMAGE`},
	} {
		trace, err := ReadTrace(strings.NewReader(fmt.Sprintf("%s\n0,a,u,clip,1,VIDEO\n1,a,u,%s,1,%s\n", Header, c.model, c.kind)))
		if err != nil {
			t.Fatal(err)
		}
		err = trace.Check(doc)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s: %v, want %q", c.model, c.kind, err, c.says)
		}
	}
}

// bigTrace writes lines without keeping them.
func bigTrace(lines int) io.Reader {
	in, out := io.Pipe()
	go func() {
		text := append(make([]byte, 0, 1<<16), Header+"\n"...)
		for i := range lines {
			text = fmt.Appendf(text, "%d.%03d,tenant-%04d,user-%d,clip,%d.5,VIDEO\n", i/1000, i%1000, i*7919%2000, i%10, 30+i%100)
			if len(text) > 60_000 {
				if _, err := out.Write(text); err != nil {
					return
				}
				text = text[:0]
			}
		}
		_, _ = out.Write(text)
		_ = out.Close()
	}()
	return in
}

func TestAMillionLinesAreRead(t *testing.T) {
	t.Parallel()
	const lines = 1_000_000
	var before, after runtime.MemStats
	text, err := io.ReadAll(bigTrace(lines))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	trace, err := ReadTrace(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / lines
	storetest.Figure(t, "simulate: a trace of %d lines read at %.0f lines/s, %.0f bytes kept a line", lines, lines/took.Seconds(), kept)
	runtime.KeepAlive(text)
	if len(trace.Arrivals) != lines || len(trace.Tenants) != 2000 || len(trace.Users) != 2000 {
		t.Errorf("%d arrivals, %d tenants, %d users", len(trace.Arrivals), len(trace.Tenants), len(trace.Users))
	}
}

func TestTooManyTenantsAreRefused(t *testing.T) {
	t.Parallel()
	text := append(make([]byte, 0, 4<<20), Header+"\n"...)
	for i := range MaxTenants + 1 {
		text = fmt.Appendf(text, "0,t%d,u,clip,1,VIDEO\n", i)
	}
	_, err := ReadTrace(bytes.NewReader(text))
	var at *LineError
	if !errors.As(err, &at) || at.Line != MaxTenants+2 || at.Field != "tenant" {
		t.Errorf("%v", err)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(twoLines))
	f.Add([]byte("\ufeff" + Header + "\r\n1e2,a,b,c,.5,IMAGE\r\n"))
	f.Add([]byte(Header + "\n-0,a,b,c,NaN,VIDEO\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		trace, err := ReadTrace(bytes.NewReader(in))
		if (trace == nil) == (err == nil) {
			t.Fatal("either a trace or an error")
		}
		if err != nil {
			var at *LineError
			if !errors.As(err, &at) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		last := int64(0)
		for _, a := range trace.Arrivals {
			if a.At < last || a.At > MaxAtSeconds*1e6 || a.Duration < 1 || a.Duration > MaxDuration*1e6 || trace.Users[a.User].Tenant != a.Tenant {
				t.Fatalf("%+v", a)
			}
			last = a.At
		}
		var out bytes.Buffer
		if err := trace.Write(&out); err != nil {
			t.Fatal(err)
		}
		again, err := ReadTrace(&out)
		if err != nil {
			t.Fatalf("what was written is not taken: %v", err)
		}
		if !reflect.DeepEqual(again.Arrivals, trace.Arrivals) {
			t.Fatal("other arrivals came back")
		}
	})
}
