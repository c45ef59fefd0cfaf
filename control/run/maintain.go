package run

import (
	"context"
	"fmt"
	"time"

	"fairlane/audit"
	"fairlane/store/facts"
)

type checkCmd struct{ storeSettings }

// Run checks the invariants and lists what it found.
func (c *checkCmd) Run(e *env) error {
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		findings, err := facts.NewCheck(db).Run(e.ctx)
		if err != nil {
			return err
		}
		report, err := audit.Verify(e.ctx, facts.NewAudits(db))
		if err != nil {
			return err
		}
		if !report.OK() {
			findings = append(findings, facts.Finding{Invariant: "I07", Object: "audit chain", Detail: chain(report)})
		}
		for _, i := range facts.Invariants {
			state := "holds"
			if !i.Shown {
				state = "shown by tests, not by a database"
			}
			for _, f := range findings {
				if f.Invariant == i.Number {
					state = "BROKEN"
				}
			}
			fmt.Fprintf(e.out, "%s %s: %s\n", i.Number, i.Says, state)
		}
		for _, f := range findings {
			fmt.Fprintf(e.out, "  %s %s: %s\n", f.Invariant, f.Object, f.Detail)
		}
		if len(findings) > 0 {
			return foundError{fmt.Sprintf("%d findings", len(findings))}
		}
		fmt.Fprintln(e.out, "clean")
		return nil
	})
}

type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Walk the chain and name the first record that is wrong."`
}

type auditVerifyCmd struct{ storeSettings }

// Run verifies the chain.
func (c *auditVerifyCmd) Run(e *env) error {
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		report, err := audit.Verify(e.ctx, facts.NewAudits(db))
		if err != nil {
			return err
		}
		fmt.Fprintln(e.out, chain(report))
		if !report.OK() {
			return foundError{"the audit chain does not verify"}
		}
		return nil
	})
}

// chain says what a verification found.
func chain(r audit.Report) string {
	if r.OK() {
		return fmt.Sprintf("%d audit records verify, the last has hash %s", r.Events, r.Hash)
	}
	return fmt.Sprintf("record %d: %s (%s); %d records before it verify", r.FirstBad, r.Detail, r.Fault, r.Events)
}

type migrateCmd struct{ storeSettings }

// Run brings the schema up to date.
func (c *migrateCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, 30*time.Minute)
	defer cancel()
	return withURL(ctx, &c.storeSettings, func(url string) error {
		from, to, err := facts.Migrate(ctx, url)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.out, "schema version %d, was %d\n", to, from)
		return nil
	})
}
