package demo

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the trace
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

const (
	// TraceLength is how long the trace lasts before it begins again.
	TraceLength = 24 * time.Hour
	// traceWindow is the length of the windows over which rates are stated.
	traceWindow  = 10 * time.Minute
	traceWindows = int(TraceLength / traceWindow)

	maxTraceClients = 1000
	maxTraceRate    = 1e6 // requests a second
	maxTraceCV      = 1000
)

//go:embed trace/day.csv.gz
var dayTrace []byte

// Trace is how often each client asks, window by window, over one day.
type Trace struct {
	clients [][traceWindows]rate
}

type rate struct {
	perSecond float64
	cv        float64 // of the time between requests; 1 where none arrived
}

// LoadTrace reads the embedded trace; client 0 is the largest, offset 0 the start of the busiest hour.
func LoadTrace() (*Trace, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(dayTrace))
	if err != nil {
		return nil, fmt.Errorf("demo trace: %w", err)
	}
	return ReadTrace(zipped)
}

// ReadTrace reads the columns window_start_s, client, rate_per_s and cv. Clients are numbered from 0
// without gaps; an error names the line.
func ReadTrace(r io.Reader) (*Trace, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = 4
	rows.ReuseRecord = true
	if _, err := rows.Read(); err != nil {
		return nil, fmt.Errorf("demo trace: heading: %w", err)
	}
	t := &Trace{}
	for line := 2; ; line++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = t.add(row)
		}
		if err != nil {
			return nil, fmt.Errorf("demo trace: line %d: %w", line, err)
		}
	}
	if len(t.clients) == 0 {
		return nil, errors.New("demo trace: no rows")
	}
	for client := range t.clients {
		if t.Requests(client, 0, TraceLength) < 1 {
			return nil, fmt.Errorf("demo trace: client %d has less than one request", client)
		}
	}
	return t, nil
}

func (t *Trace) add(row []string) error {
	start, err := strconv.Atoi(row[0])
	window := int(traceWindow / time.Second)
	if err != nil || start < 0 || start >= traceWindows*window || start%window != 0 {
		return fmt.Errorf("window_start_s %q is not a multiple of %d below %d", row[0], window, traceWindows*window)
	}
	client, err := strconv.Atoi(row[1])
	if err != nil || client < 0 || client >= maxTraceClients {
		return fmt.Errorf("client %q is not a number from 0 to %d", row[1], maxTraceClients-1)
	}
	perSecond, err := number(row[2], maxTraceRate)
	if err != nil {
		return fmt.Errorf("rate_per_s %w", err)
	}
	cv, err := number(row[3], maxTraceCV)
	if err != nil {
		return fmt.Errorf("cv %w", err)
	}
	for len(t.clients) <= client {
		t.clients = append(t.clients, [traceWindows]rate{})
	}
	at := &t.clients[client][start/window]
	if at.perSecond != 0 {
		return fmt.Errorf("client %d has window %d twice", client, start)
	}
	*at = rate{perSecond: perSecond, cv: cv}
	return nil
}

func number(text string, limit float64) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f <= 0 || f > limit {
		return 0, fmt.Errorf("%q is not a number above 0 and at most %g", text, limit)
	}
	return f, nil
}

// Clients is how many clients the trace has.
func (t *Trace) Clients() int { return len(t.clients) }

// Requests is the expected number of a client's requests from one offset to another, within the trace.
func (t *Trace) Requests(client int, from, to time.Duration) float64 {
	sum := 0.0
	for w, r := range t.clients[client] {
		start := time.Duration(w) * traceWindow
		overlap := min(to, start+traceWindow) - max(from, start)
		if overlap > 0 {
			sum += r.perSecond * overlap.Seconds()
		}
	}
	return sum
}
