package workload

import (
	"bytes"
	_ "embed" // the published files
	"io"
)

//go:embed data/servegen_clients.csv.gz
var servegenClients []byte

//go:embed data/servegen_sizes.csv.gz
var servegenSizes []byte

//go:embed data/azure_code.csv.gz
var azureCode []byte

// Source is the published data that a trace is made of.
type Source struct {
	Clients []Client
	Burst   []float64 // seconds since the start of its hour, in order
}

// EmbeddedFile is one of the files that the program carries, in the order in which Read takes them: 0
// clients, 1 sizes, 2 burst.
func EmbeddedFile(i int) io.Reader {
	return bytes.NewReader([][]byte{servegenClients, servegenSizes, azureCode}[i])
}

// Embedded reads the files that the program carries.
func Embedded() (*Source, error) {
	return Read(EmbeddedFile(0), EmbeddedFile(1), EmbeddedFile(2))
}

// Read reads clients, their sizes and the burst, each zipped or plain. An error names file and line.
func Read(clients, sizes, burst io.Reader) (*Source, error) {
	s := &Source{}
	var err error
	if s.Clients, err = readClients(clients); err != nil {
		return nil, err
	}
	if err = s.readSizes(sizes); err != nil {
		return nil, err
	}
	s.Burst, err = readBurst(burst)
	return s, err
}
