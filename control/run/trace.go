package run

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"fairlane/control/simulate/workload"
)

type traceCmd struct {
	Derive traceDeriveCmd `cmd:"" help:"Make a trace out of the published ones, for fairlane simulate."`
}

type traceDeriveCmd struct {
	Out         string `required:"" help:"File to write; gzip when its name ends with .gz; - for standard output."`
	Policy      string `default:"builtin:fair" help:"Policy whose models and slot units the trace is for."`
	ClientsFile string `help:"ServeGen's clients (client_id,window_start_s,rate_per_s,iat_cv,iat_dist,p1); the embedded ones when empty."`
	SizesFile   string `help:"ServeGen's sizes (client_id,field,mean); the embedded ones when empty."`
	BurstFile   string `help:"Azure's code completion trace (TIMESTAMP); the embedded one when empty."`
	workloadFlags
}

// Run derives a trace and writes it.
func (c *traceDeriveCmd) Run(e *env) error {
	side, _, err := readPolicy(c.Policy)
	if err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return settingError{"trace derive", err.Error()}
	}
	trace, err := workload.Derive(source, side.doc, c.options())
	if err != nil {
		return settingError{"trace derive", err.Error()}
	}
	if c.Out == "-" {
		out := bufio.NewWriter(e.out)
		if err := trace.Write(out); err != nil {
			return err
		}
		return out.Flush()
	}
	if err := writeFile(c.Out, trace.Write); err != nil {
		return err
	}
	fmt.Fprintf(e.errOut, "%s: %d tasks of %d tenants in %.1f h\n", c.Out, len(trace.Arrivals), len(trace.Tenants), c.Hours)
	return nil
}

// source reads the files that are named and takes the embedded ones for the rest.
func (c *traceDeriveCmd) source() (*workload.Source, error) {
	files := [3]io.Reader{}
	for i, name := range []string{c.ClientsFile, c.SizesFile, c.BurstFile} {
		files[i] = workload.EmbeddedFile(i)
		if name == "" {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		files[i] = file
	}
	return workload.Read(files[0], files[1], files[2])
}

// writeFile writes a file whole or not at all.
func writeFile(name string, write func(io.Writer) error) (err error) {
	file, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	out := bufio.NewWriter(file)
	var to io.Writer = out
	var zipped *gzip.Writer
	if strings.HasSuffix(name, ".gz") {
		zipped, _ = gzip.NewWriterLevel(out, gzip.BestCompression)
		to = zipped
	}
	if err = write(to); err != nil {
		return err
	}
	if zipped != nil {
		if err = zipped.Close(); err != nil {
			return err
		}
	}
	if err = out.Flush(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
