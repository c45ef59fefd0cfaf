package run

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fairlane/control"
	"fairlane/control/run/policyfile"
	"fairlane/control/simulate"
	"fairlane/control/simulate/workload"
	"fairlane/policy"
)

type simulateCmd struct {
	Run      simulateRunCmd      `cmd:"" default:"withargs" help:"Play a trace against one or two policies."`
	Fairness simulateFairnessCmd `cmd:"" help:"Make the tables of the README's How fair is it."`
	Policy   simulatePolicyCmd   `cmd:"" help:"Write a ready policy as YAML, to start from."`
}

type simulateRunCmd struct {
	Trace       string `default:"builtin:servegen" help:"Trace file (at_s,tenant,user,model,duration_s,kind; plain or gzip), or builtin:servegen, which the flags below shape."`
	Policy      string `default:"builtin:fair" help:"Policy file (YAML or JSON), builtin:fair or builtin:lending."`
	Against     string `help:"A second one to compare with; fifo or rr: the same capacity without Fairlane, first come first served or tenants in turn."`
	Seeds       int    `default:"1" help:"How many times, 1 to 100: the first is the trace as it is, every other moves tenants against each other and varies durations."`
	Tenants     string `help:"CSV file with the columns tenant,plan; tenants that it does not name have the policy's first plan."`
	NoAdmission bool   `help:"Let everything in that could ever run: no rates, no queue caps, no expected waits."`
	Rows        int    `default:"20" help:"Tenants to print, those with the most tasks; 0: all."`
	JSON        bool   `name:"json" help:"Print JSON instead of a table."`
	workloadFlags
}

// workloadFlags shape a trace that is derived.
type workloadFlags struct {
	Hours   float64 `default:"24" help:"Length of the derived trace, 0.1 to 168."`
	From    float64 `default:"0" help:"Hours into the published day at which it begins, 0 to 24."`
	Load    float64 `default:"0.95" help:"What the clients offer, over the policy's slot units."`
	Clients int     `default:"0" help:"Only so many of the largest clients; 0: all."`
	Users   int     `default:"10" help:"Users of each tenant."`
	Steady  bool    `help:"Every client asks at its mean rate all day."`
	Hostile float64 `default:"0" help:"Load of one more tenant, hostile, with the bursts of the code completion trace; 1.86 is that trace as it is for 100 slots."`
	Endless bool    `help:"Three more tenants of weight 1, 2 and 4 that never run out of work."`
	Seed    uint64  `default:"1" help:"Of the derivation."`
}

func (f *workloadFlags) options() workload.Options {
	o := workload.Options{
		Hours: f.Hours, From: f.From, Load: f.Load, Clients: f.Clients, Users: f.Users, Steady: f.Steady, Hostile: f.Hostile, Seed: f.Seed,
	}
	if f.Endless {
		o.Endless = workload.EndlessWeights
	}
	return o
}

// contender is one side of a simulation.
type contender struct {
	name string
	doc  *policy.Document
	mode simulate.Mode
}

// Run plays the simulation and prints what came of it.
func (c *simulateRunCmd) Run(e *env) error {
	if c.Seeds < 1 || c.Seeds > 100 || c.Rows < 0 {
		return settingError{"simulate", "seeds must be 1 to 100, rows at least 0"}
	}
	first, file, err := readPolicy(c.Policy)
	if err != nil {
		return err
	}
	sides, files := []contender{first}, []*policyfile.File{file}
	switch c.Against {
	case "":
	case string(simulate.FIFO), string(simulate.RoundRobin):
		sides, files = append(sides, contender{c.Against, first.doc, simulate.Mode(c.Against)}), append(files, nil)
	default:
		second, file, err := readPolicy(c.Against)
		if err != nil {
			return err
		}
		sides, files = append(sides, second), append(files, file)
	}
	plans, err := readPlans(c.Tenants)
	if err != nil {
		return err
	}
	trace, err := c.trace(first.doc)
	if err != nil {
		return err
	}
	for i := range sides {
		if err := checkSide(trace, &sides[i], files[i], plans); err != nil {
			return err
		}
	}
	jobs := make([]simulate.Config, 0, len(sides)*c.Seeds)
	for _, s := range sides {
		for seed := range c.Seeds {
			jobs = append(jobs, simulate.Config{
				Trace: trace, Document: s.doc, Mode: s.mode, Plans: plans, Seed: uint64(seed) + 1, Admission: !c.NoAdmission, //nolint:gosec // at most 100
			})
		}
	}
	results, err := simulateAll(e.ctx, jobs, e.errOut)
	if err != nil {
		return err
	}
	played := make([]side, len(sides))
	for i := range sides {
		mine := results[i*c.Seeds : (i+1)*c.Seeds]
		played[i] = side{Name: sides[i].name, Report: simulate.Summarise(mine), Results: mine}
	}
	about := traceFacts{Trace: c.Trace, Tasks: len(trace.Arrivals), Hours: results[0].Hours, Tenants: len(trace.Tenants), Seeds: c.Seeds}
	if c.JSON {
		return printJSON(e.out, about, played)
	}
	return printTables(e.out, about, played, c.Rows)
}

func (c *simulateRunCmd) trace(doc *policy.Document) (*simulate.Trace, error) {
	if c.Trace != "builtin:servegen" {
		return readTrace(c.Trace)
	}
	source, err := workload.Embedded()
	if err != nil {
		return nil, err
	}
	trace, err := workload.Derive(source, doc, c.options())
	if err != nil {
		return nil, settingError{"simulate", err.Error()}
	}
	return trace, nil
}

// readTrace reads a trace file, zipped or not.
func readTrace(name string) (*simulate.Trace, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, settingError{"trace", err.Error()}
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<16)
	var from io.Reader = in
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if from, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	trace, err := simulate.ReadTrace(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return trace, nil
}

// readPolicy reads a policy file or takes a ready one.
func readPolicy(name string) (contender, *policyfile.File, error) {
	if ready, ok := strings.CutPrefix(name, "builtin:"); ok {
		doc, err := workload.Ready(ready)
		if err != nil {
			return contender{}, nil, settingError{"policy", err.Error()}
		}
		return contender{name: name, doc: doc}, nil, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return contender{}, nil, settingError{"policy", err.Error()}
	}
	if info.Size() > policy.MaxDocumentBytes {
		return contender{}, nil, settingError{"policy", fmt.Sprintf("%s has %d bytes, at most %d are taken", name, info.Size(), policy.MaxDocumentBytes)}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return contender{}, nil, settingError{"policy", err.Error()}
	}
	file, err := policyfile.Read(filepath.Base(name), text)
	if err != nil {
		return contender{}, nil, err
	}
	return contender{name: filepath.Base(name), doc: file.Document}, file, nil
}

// checkSide holds a policy to its rules, and the trace to the policy's models.
func checkSide(trace *simulate.Trace, s *contender, file *policyfile.File, plans map[string]string) error {
	if err := trace.Check(s.doc); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	err := simulate.Validate(trace, s.doc, plans)
	var told *control.Error
	if file != nil && errors.As(err, &told) && len(told.Fields) > 0 {
		return file.Check(told.Fields)
	}
	return err
}

// readPlans reads which plan tenants have.
func readPlans(name string) (map[string]string, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no file is no plans
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, settingError{"tenants", err.Error()}
	}
	plans := map[string]string{}
	for i, line := range strings.Split(string(bytes.TrimPrefix(text, []byte("\ufeff"))), "\n") {
		line = strings.TrimSuffix(line, "\r")
		tenant, plan, ok := strings.Cut(line, ",")
		switch {
		case i == 0 && line == "tenant,plan":
		case i == 0:
			return nil, settingError{"tenants", fmt.Sprintf("%s: line 1: the header must be \"tenant,plan\"", name)}
		case line == "":
		case !ok || tenant == "" || plan == "" || strings.Contains(plan, ","):
			return nil, settingError{"tenants", fmt.Sprintf("%s: line %d: a tenant and a plan are needed, with one comma between", name, i+1)}
		case plans[tenant] != "":
			return nil, settingError{"tenants", fmt.Sprintf("%s: line %d: tenant %q is there twice", name, i+1, tenant)}
		default:
			plans[tenant] = plan
		}
	}
	return plans, nil
}

// tellEvery is how often a simulation says how far it is.
const tellEvery = 5 * time.Second

// simulateAll plays the jobs, as many at a time as there are processors, and tells how far it is now and then.
func simulateAll(ctx context.Context, jobs []simulate.Config, tell io.Writer) ([]*simulate.Result, error) {
	results := make([]*simulate.Result, len(jobs))
	var mu sync.Mutex
	at := make([]simulate.Progress, len(jobs))
	last, done := time.Now(), 0
	report := func(i int, p simulate.Progress) {
		mu.Lock()
		defer mu.Unlock()
		at[i] = p
		if time.Since(last) < tellEvery {
			return
		}
		last = time.Now()
		fmt.Fprintf(tell, "simulate: %d of %d runs done; run %d at %.1f h of %.1f, %d of %d tasks came, %d wait, %d run\n",
			done, len(jobs), i+1, p.At.Hours(), p.Horizon.Hours(), p.Arrivals, p.Of, p.Waiting, p.Running)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, min(runtime.NumCPU(), len(jobs))))
	for i := range jobs {
		group.Go(func() error {
			jobs[i].Progress = func(p simulate.Progress) { report(i, p) }
			r, err := simulate.Run(ctx, jobs[i])
			if err != nil {
				return err
			}
			mu.Lock()
			results[i], done = r, done+1
			mu.Unlock()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

type simulatePolicyCmd struct {
	Name string `arg:"" help:"fair or lending."`
}

// Run writes the policy.
func (c *simulatePolicyCmd) Run(e *env) error {
	doc, err := workload.Ready(strings.TrimPrefix(c.Name, "builtin:"))
	if err != nil {
		return settingError{"policy", err.Error()}
	}
	text, err := policyfile.Write(doc)
	if err != nil {
		return err
	}
	_, err = e.out.Write(text)
	return err
}

// traceFacts is what a simulation says of its trace.
type traceFacts struct {
	Trace   string  `json:"trace"`
	Tasks   int     `json:"tasks"`
	Hours   float64 `json:"hours"`
	Tenants int     `json:"tenants"`
	Seeds   int     `json:"seeds"`
}

// side is a contender with what it came to.
type side struct {
	Name    string             `json:"policy"`
	Report  *simulate.Report   `json:"report"`
	Results []*simulate.Result `json:"results"`
}

type difference struct {
	Overall []simulate.Row `json:"overall"`
	Lanes   []simulate.Row `json:"lanes"`
	Tenants []simulate.Row `json:"tenants"`
}

func differ(a, b *simulate.Report) difference {
	return difference{
		Overall: simulate.Differences([]simulate.Row{a.Overall}, []simulate.Row{b.Overall}),
		Lanes:   simulate.Differences(a.Lanes, b.Lanes),
		Tenants: simulate.Differences(a.Tenants, b.Tenants),
	}
}

func printJSON(out io.Writer, about traceFacts, played []side) error {
	answer := struct {
		traceFacts
		Policies    []side      `json:"policies"`
		Differences *difference `json:"differences,omitempty"` // second − first, medians
	}{traceFacts: about, Policies: played}
	if len(played) == 2 {
		d := differ(played[0].Report, played[1].Report)
		answer.Differences = &d
	}
	return json.NewEncoder(out).Encode(answer)
}
