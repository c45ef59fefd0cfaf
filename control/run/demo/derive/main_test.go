package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const heading = "client_id,window_start_s,rate_per_s,iat_cv,iat_dist,p1,p2\n"

func zip(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &zipped
}

func unzip(t *testing.T, zipped []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDeriveRanksRotatesAndCuts(t *testing.T) {
	t.Parallel()
	windows, err := read(zip(t, heading+
		"77,0,9,1,Gamma,0,0\n"+ // another day
		"77,86400,1,1.23456,Gamma,0,0\n"+ // hour 0
		"12,97200,5,2,Weibull,0,0\n"+ // hour 3, the busiest
		"77,97800,0.5,,Gamma,0,0\n"+ // hour 3
		"12,172200,0.25,3,Gamma,0,0\n"+ // hour 23
		"99,97200,0.1,1,Gamma,0,0\n"), 1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := derive(windows, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := "window_start_s,client,rate_per_s,cv\n" +
		"0,0,5,2\n" +
		"75000,0,0.25,3\n" +
		"600,1,0.5,1\n" +
		"75600,1,1,1.235\n"
	if got := unzip(t, text); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	again, err := derive(windows[:0:0], 2)
	if err == nil {
		t.Errorf("no clients give %d bytes", len(again))
	}
}

func TestReadNamesTheLine(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"x,86400,1,1,Gamma,0,0\n", "1,x,1,1,Gamma,0,0\n", "1,86400,x,1,Gamma,0,0\n", "1,86400,1,x,Gamma,0,0\n"} {
		if _, err := read(zip(t, heading+row), 1); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", row, err)
		}
	}
}

func TestRunNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if err := run("", "x", 0, 1); err == nil {
		t.Error("no folder, no error")
	}
	if err := run(t.TempDir(), "x", 0, 1); err == nil || !strings.Contains(err.Error(), source) {
		t.Errorf("got %v, want an error that names %s", err, source)
	}
}
