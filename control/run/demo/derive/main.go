// Command derive makes the demo's trace out of the published one: one day, its largest clients, rotated so
// that the busiest hour comes first. The same input gives the same bytes. It is not part of the product.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	source     = "servegen_m_large_clients_7d.csv.gz"
	daySeconds = 86_400
	hour       = 3_600
)

func main() {
	in := flag.String("in", "", "folder that holds "+source)
	out := flag.String("out", "", "file to write")
	day := flag.Int("day", 6, "day of the source, 0 to 6")
	clients := flag.Int("clients", 60, "how many of the largest clients to keep")
	flag.Parse()
	if err := run(*in, *out, *day, *clients); err != nil {
		fmt.Fprintln(os.Stderr, "derive:", err)
		os.Exit(1)
	}
}

func run(in, out string, day, clients int) error {
	if in == "" || out == "" || day < 0 || day > 6 || clients < 1 {
		return fmt.Errorf("give -in FOLDER and -out FILE, -day 0 to 6, -clients 1 or more")
	}
	file, err := os.Open(filepath.Join(in, source))
	if err != nil {
		return err
	}
	defer file.Close()
	windows, err := read(file, day)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	text, err := derive(windows, clients)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644) //nolint:gosec // a file of the repository
}

type window struct {
	start, client int
	rate, cv      float64
}

// read returns the windows of one day, with starts counted from its midnight.
func read(r io.Reader, day int) ([]window, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		return nil, err
	}
	var all []window
	for i, row := range rows {
		if i == 0 {
			continue
		}
		w, err := parse(row)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if w.start/daySeconds == day && w.rate > 0 {
			w.start %= daySeconds
			all = append(all, w)
		}
	}
	return all, nil
}

func parse(row []string) (w window, err error) {
	if len(row) < 4 {
		return w, fmt.Errorf("%d columns", len(row))
	}
	if w.client, err = strconv.Atoi(row[0]); err != nil {
		return w, err
	}
	start, err := strconv.ParseFloat(row[1], 64)
	if err != nil {
		return w, err
	}
	w.start = int(start)
	if w.rate, err = strconv.ParseFloat(row[2], 64); err != nil {
		return w, err
	}
	if row[3] == "" { // a single request has no variation
		w.cv = 1
		return w, nil
	}
	w.cv, err = strconv.ParseFloat(row[3], 64)
	return w, err
}

func derive(windows []window, clients int) ([]byte, error) {
	byClient, byHour := map[int]float64{}, map[int]float64{}
	for _, w := range windows {
		byClient[w.client] += w.rate
	}
	ranked := make([]int, 0, len(byClient))
	for client := range byClient {
		ranked = append(ranked, client)
	}
	slices.SortFunc(ranked, func(a, b int) int {
		return cmp.Or(cmp.Compare(byClient[b], byClient[a]), cmp.Compare(a, b))
	})
	if len(ranked) < clients {
		return nil, fmt.Errorf("the day has %d clients, %d are wanted", len(ranked), clients)
	}
	rank := map[int]int{}
	for i, client := range ranked[:clients] {
		rank[client] = i
	}
	windows = slices.DeleteFunc(windows, func(w window) bool { _, kept := rank[w.client]; return !kept })
	for _, w := range windows {
		byHour[w.start/hour] += w.rate
	}
	busiest := 0
	for h := range daySeconds / hour {
		if byHour[h] > byHour[busiest] {
			busiest = h
		}
	}
	for i := range windows {
		windows[i].client = rank[windows[i].client]
		windows[i].start = (windows[i].start - busiest*hour + daySeconds) % daySeconds
	}
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.start, b.start))
	})
	return encode(windows)
}

func encode(windows []window) ([]byte, error) {
	var text bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&text, gzip.BestCompression) // without a time stamp
	if err != nil {
		return nil, err
	}
	rows := csv.NewWriter(zipped)
	if err := rows.Write([]string{"window_start_s", "client", "rate_per_s", "cv"}); err != nil {
		return nil, err
	}
	for _, w := range windows {
		err := rows.Write([]string{
			strconv.Itoa(w.start), strconv.Itoa(w.client),
			strconv.FormatFloat(w.rate, 'g', 5, 64), strconv.FormatFloat(w.cv, 'g', 4, 64),
		})
		if err != nil {
			return nil, err
		}
	}
	rows.Flush()
	if err := rows.Error(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
