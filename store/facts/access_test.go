package facts_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/store/facts"
)

func accounts(replace bool, logins ...string) []access.NewAccount {
	var list []access.NewAccount
	for _, login := range logins {
		list = append(list, access.NewAccount{Login: login, Name: login, PasswordHash: "$argon2id$x", Replace: replace, Grants: []access.Grant{{Role: access.Viewer}}})
	}
	return list
}

func TestAccountsAreMadeOnceAndReplacedOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operators, rules := facts.NewOperators(w.db), facts.NewAccess(w.db)
	for i, c := range []struct {
		list []access.NewAccount
		made int
	}{{accounts(false, "li", "ana"), 2}, {accounts(false, "li", "bob"), 1}, {accounts(false, "li"), 0}, {accounts(true, "li"), 1}} {
		before, err := rules.AccessVersion(w.ctx)
		w.must(err)
		made, err := operators.EnsureOperators(w.ctx, control.System, "test", c.list)
		w.must(err)
		after, err := rules.AccessVersion(w.ctx)
		w.must(err)
		if len(made) != c.made || (after > before) != (c.made > 0) {
			t.Errorf("step %d: made %v, version %d to %d", i, made, before, after)
		}
	}
	if n := w.number(t, `SELECT count(*) FROM audit_event WHERE action IN ('operator.add', 'operator.change')`); n != 4 {
		t.Errorf("%d records", n)
	}
	if _, err := operators.EnsureOperators(w.ctx, control.System, "test", []access.NewAccount{{Login: "x y"}}); control.CodeOf(err) != control.CodeInvalid {
		t.Errorf("a wrong account: %v", err)
	}
	if _, err := operators.OperatorByLogin(w.ctx, "nobody"); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("nobody: %v", err)
	}
}

func TestShippedRulesAreWrittenOnceByManyStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules := facts.NewAccess(w.db)
	var wait sync.WaitGroup
	var mu sync.Mutex
	wrote := 0
	for range 8 {
		wait.Go(func() {
			did, err := rules.EnsureRules(w.ctx, access.Shipped())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if did {
				wrote++
			}
		})
	}
	wait.Wait()
	set, err := rules.LoadAccess(w.ctx)
	w.must(err)
	if wrote != 1 || len(set.Rules) != len(access.Shipped()) || set.Version != 1 {
		t.Errorf("%d starts wrote, %d rules, version %d", wrote, len(set.Rules), set.Version)
	}
}

// Without its record no account, session or revocation comes to be.
func TestTrap_D60_NoChangeOfRightsWithoutItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operators, rules, sessions := facts.NewOperators(w.db), facts.NewAccess(w.db), facts.NewSessions(w.db)
	_, err := operators.EnsureOperators(w.ctx, control.System, "test", accounts(false, "li"))
	w.must(err)
	li, err := operators.OperatorByLogin(w.ctx, "li")
	w.must(err)
	ctx := access.WithSubject(w.ctx, access.Subject{Operator: li.ID, Login: "li"})
	w.must(sessions.CommitCtx(ctx, "token-1", []byte("x"), time.Now().Add(time.Hour)))
	before := w.text(t, state)
	w.exec(t, `CREATE FUNCTION no_record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full'; END $$`)
	w.exec(t, `CREATE TRIGGER no_record BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION no_record()`)
	for name, do := range map[string]func() error{
		"add": func() error {
			_, err := operators.EnsureOperators(w.ctx, control.System, "test", accounts(false, "ana"))
			return err
		},
		"replace": func() error {
			_, err := operators.EnsureOperators(w.ctx, control.System, "test", accounts(true, "li"))
			return err
		},
		"disable":  func() error { return operators.Disable(w.ctx, control.System, "test", "li") },
		"revoke":   func() error { return rules.Revoke(w.ctx, control.System, "test", li.ID, access.Viewer) },
		"rules":    func() error { _, err := rules.EnsureRules(w.ctx, access.Shipped()); return err },
		"sign in":  func() error { return sessions.CommitCtx(ctx, "token-2", []byte("x"), time.Now().Add(time.Hour)) },
		"sign out": func() error { return sessions.DeleteCtx(ctx, "token-1") },
		"end all":  func() error { _, err := sessions.RevokeOf(w.ctx, control.System, "test", li.ID); return err },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if after := w.text(t, state); after != before {
			t.Errorf("%s changed %s to %s", name, before, after)
		}
	}
}

const state = `SELECT concat_ws('|', (SELECT version FROM access_head), (SELECT count(*) FROM access_rule), (SELECT count(*) FROM access_grant),
	(SELECT string_agg(login || status || updated_at, ',' ORDER BY login) FROM operator), (SELECT string_agg(token_hash, ',' ORDER BY token_hash) FROM session))`

func TestSessionsEndInTimeAndNeverComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operators, sessions := facts.NewOperators(w.db), facts.NewSessions(w.db)
	_, err := operators.EnsureOperators(w.ctx, control.System, "test", accounts(false, "li"))
	w.must(err)
	li, err := operators.OperatorByLogin(w.ctx, "li")
	w.must(err)
	ctx := access.WithSubject(w.ctx, access.Subject{Operator: li.ID, Login: "li"})
	w.must(sessions.CommitCtx(ctx, "a", []byte("data"), time.Now().Add(time.Hour)))
	found := func(token string) bool {
		data, ok, err := sessions.FindCtx(w.ctx, token)
		w.must(err)
		if ok && string(data) != "data" {
			t.Errorf("data %q", data)
		}
		return ok
	}
	if !found("a") || found("b") || found("") {
		t.Error("found what is not there, or not what is")
	}
	if err := sessions.CommitCtx(ctx, "a", []byte("other"), time.Now().Add(time.Hour)); err == nil {
		t.Error("a token was used twice")
	}
	if err := sessions.Commit("c", []byte("x"), time.Now().Add(time.Hour)); control.CodeOf(err) != control.CodeUnauthorized {
		t.Errorf("a session of nobody: %v", err)
	}
	// Absolute: five hours after its beginning it ends, whatever is done.
	w.exec(t, `UPDATE session SET created_at = now() - interval '4 hours'`)
	w.must(sessions.Touch(w.ctx, "a", 12*time.Hour, 5*time.Hour))
	if left := w.number(t, `SELECT extract(epoch FROM expiry - now())::bigint FROM session`); left < 3500 || left > 3601 {
		t.Errorf("%d s are left, want an hour", left)
	}
	w.exec(t, `UPDATE session SET expiry = now() - interval '1 second'`)
	w.must(sessions.Touch(w.ctx, "a", 12*time.Hour, 100*time.Hour))
	if found("a") {
		t.Error("an ended session came back")
	}
	if n, err := sessions.Sweep(w.ctx); err != nil || n != 1 {
		t.Errorf("swept %d: %v", n, err)
	}
	w.must(sessions.DeleteCtx(w.ctx, "a"))
	if _, err := sessions.RevokeOf(w.ctx, control.System, "test", uuid.New()); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("sessions of nobody: %v", err)
	}
}

func TestChangeOfRightsWakesTheReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := w.sql.Acquire(w.ctx)
	w.must(err)
	defer conn.Release()
	_, err = conn.Exec(w.ctx, `LISTEN `+control.NotifyAccess)
	w.must(err)
	_, err = facts.NewAccess(w.db).EnsureRules(w.ctx, access.Shipped())
	w.must(err)
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	note, err := conn.Conn().WaitForNotification(ctx)
	w.must(err)
	if note.Payload != "1" {
		t.Errorf("payload %q", note.Payload)
	}
}
