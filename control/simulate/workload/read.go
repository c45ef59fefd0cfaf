package workload

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// Bounds of the published files.
const (
	windowSeconds = 600
	hourSeconds   = 3600
	maxRows       = 2_000_000
	maxClient     = 100_000
	maxStart      = 366 * 24 * 3600
	maxRate       = 1e6
	maxTokens     = 1e9
	leastShape    = 0.002 // of the time between requests: a coefficient of variation of 22
	mostShape     = 100
)

// Client is one customer of the published trace.
type Client struct {
	ID      int
	Windows []Window // in order of time, those with requests
	Tokens  float64  // mean of a request's answer; 0: not known
}

// Window is how a client asks in ten minutes.
type Window struct {
	Start   float64 // seconds
	Rate    float64 // requests a second
	Shape   float64 // of the time between requests
	Weibull bool    // else Gamma
}

// table reads a file of CSV, zipped or plain, and hands over its rows by the names of columns.
func table(name string, r io.Reader, columns []string, row func(line int, cell func(int) string) error) error {
	in := bufio.NewReader(r)
	var from io.Reader = in
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		zipped, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		from = zipped
	}
	rows := csv.NewReader(from)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%s: header: %w", name, err)
	}
	place := make([]int, len(columns))
	for i, column := range columns {
		if place[i] = slices.Index(head, column); place[i] < 0 {
			return fmt.Errorf("%s: line 1: no column %q", name, column)
		}
	}
	for line := 2; ; line++ {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && line > maxRows {
			err = fmt.Errorf("more than %d rows", maxRows)
		}
		if err == nil {
			err = row(line, func(i int) string { return cells[place[i]] })
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", name, line, err)
		}
	}
}

func real(name, text string, low, high float64) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f < low || f > high {
		return 0, fmt.Errorf("%s: %q is not a number from %g to %g", name, text, low, high)
	}
	return f, nil
}

func id(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxClient {
		return 0, fmt.Errorf("client_id: %q is not a whole number from 0 to %d", text, maxClient)
	}
	return n, nil
}

func readClients(r io.Reader) ([]Client, error) {
	const name = "clients"
	byID := map[int]*Client{}
	columns := []string{"client_id", "window_start_s", "rate_per_s", "iat_cv", "iat_dist", "p1"}
	err := table(name, r, columns, func(_ int, cell func(int) string) error {
		n, err := id(cell(0))
		if err != nil {
			return err
		}
		start, err := real("window_start_s", cell(1), 0, maxStart)
		if err != nil {
			return err
		}
		w := Window{Start: start, Shape: 1}
		if w.Rate, err = real("rate_per_s", cell(2), 0, maxRate); err != nil {
			return err
		}
		if w.Shape, w.Weibull, err = shape(cell(3), cell(4), cell(5)); err != nil {
			return err
		}
		if math.Mod(start, windowSeconds) != 0 {
			return fmt.Errorf("window_start_s: %g is not a multiple of %d", start, windowSeconds)
		}
		c := byID[n]
		if c == nil {
			c = &Client{ID: n}
			byID[n] = c
		}
		if w.Rate > 0 {
			c.Windows = append(c.Windows, w)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Client
	for _, c := range byID {
		slices.SortStableFunc(c.Windows, func(a, b Window) int { return cmp.Compare(a.Start, b.Start) })
		for i := range c.Windows {
			if i > 0 && c.Windows[i].Start == c.Windows[i-1].Start {
				return nil, fmt.Errorf("%s: client %d has the window %g twice", name, c.ID, c.Windows[i].Start)
			}
		}
		if len(c.Windows) > 0 {
			out = append(out, *c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: nobody asks for anything", name)
	}
	slices.SortFunc(out, func(a, b Client) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// shape is that of the distribution that the file names, else that of the Gamma with the coefficient of
// variation; a single request has neither.
func shape(cv, dist, p1 string) (k float64, weibull bool, err error) {
	k = 1
	switch dist {
	case "Gamma", "Weibull":
		if k, err = real("p1", p1, 0, 1e9); err != nil {
			return 0, false, err
		}
	case "":
		if cv != "" {
			v, err := real("iat_cv", cv, 0, 1e6)
			if err != nil {
				return 0, false, err
			}
			k = 1 / (v * v)
		}
	default:
		return 0, false, fmt.Errorf("iat_dist: %q is neither Gamma nor Weibull", dist)
	}
	return min(max(k, leastShape), mostShape), dist == "Weibull", nil
}

// readSizes gives each client the mean of its answers' tokens over the file's windows.
func (s *Source) readSizes(r io.Reader) error {
	type mean struct{ sum, n float64 }
	means := map[int]mean{}
	columns := []string{"client_id", "field", "mean"}
	err := table("sizes", r, columns, func(_ int, cell func(int) string) error {
		n, err := id(cell(0))
		if err != nil {
			return err
		}
		if cell(1) != "output_tokens" {
			return nil
		}
		tokens, err := real("mean", cell(2), 0, maxTokens)
		if err != nil {
			return err
		}
		m := means[n]
		means[n] = mean{m.sum + tokens, m.n + 1}
		return nil
	})
	for i := range s.Clients {
		if m := means[s.Clients[i].ID]; m.n > 0 {
			s.Clients[i].Tokens = m.sum / m.n
		}
	}
	return err
}

// readBurst reads when the requests of an hour came.
func readBurst(r io.Reader) ([]float64, error) {
	const layout = "2006-01-02 15:04:05.9999999"
	var out []float64
	var first time.Time
	err := table("burst", r, []string{"TIMESTAMP"}, func(_ int, cell func(int) string) error {
		at, err := time.Parse(layout, cell(0))
		if err != nil {
			return fmt.Errorf("TIMESTAMP: %q is not like %s", cell(0), layout)
		}
		if first.IsZero() {
			first = at
		}
		since := at.Sub(first).Seconds()
		if since < 0 || len(out) > 0 && since < out[len(out)-1] || since >= hourSeconds {
			return fmt.Errorf("TIMESTAMP: %s is out of order or more than an hour after the first", cell(0))
		}
		out = append(out, since)
		return nil
	})
	if err == nil && len(out) == 0 {
		err = errors.New("burst: no requests")
	}
	return out, err
}
