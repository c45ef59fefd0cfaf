package facts_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fairlane/migrations"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// schemaSQL lists everything that a migration can make, as text and in a stable order; the version table
// belongs to the migration tool.
const schemaSQL = `
WITH relation AS (
    SELECT c.oid, c.relname, c.relkind, c.reloptions
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE 'goose\_%'
)
SELECT format('relation %s %s %s', relkind, relname, reloptions) FROM relation
UNION ALL
SELECT format('column %s.%s %s %s not null %s default %s generated %s', r.relname, a.attname, row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum),
              format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated)
FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
WHERE r.relkind IN ('r', 'p', 'v', 'm')
UNION ALL
SELECT format('constraint %s %s %s', r.relname, k.conname, pg_get_constraintdef(k.oid)) FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid
UNION ALL
SELECT format('index %s', pg_get_indexdef(i.indexrelid)) FROM relation r JOIN pg_index i ON i.indrelid = r.oid
UNION ALL
SELECT format('trigger %s', pg_get_triggerdef(t.oid)) FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT format('function %s', pg_get_functiondef(p.oid)) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
UNION ALL
SELECT format('type %s %s', t.typname, t.typtype) FROM pg_type t
WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd') AND t.typname NOT LIKE 'goose\_%'
UNION ALL
SELECT format('comment %s.%s %s', r.relname, a.attname, d.description) FROM relation r JOIN pg_description d ON d.objoid = r.oid
LEFT JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = d.objsubid AND d.objsubid > 0
UNION ALL
SELECT format('extension %s', extname) FROM pg_extension
ORDER BY 1`

func schema(t *testing.T, db *storetest.Database) []string {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), schemaSQL)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// numbers are those of the migrations, in their order.
func numbers(t *testing.T) []int64 {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	list := make([]int64, len(files))
	for i, name := range files {
		if list[i], err = strconv.ParseInt(name[:5], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func migrateTo(t *testing.T, db *storetest.Database, version int64) {
	t.Helper()
	if _, to, err := facts.MigrateTo(t.Context(), db.URL, version); err != nil || to != version {
		t.Fatalf("to version %d: at %d, %v", version, to, err)
	}
}

func TestEveryMigrationGoesUpDownAndUpAgain(t *testing.T) {
	t.Parallel()
	db := storetest.Empty(t)
	_, known, err := facts.SchemaVersion(t.Context(), db.URL)
	list := numbers(t)
	if err != nil || known != list[len(list)-1] {
		t.Fatalf("known versions: %d, %v", known, err)
	}
	last := int64(0)
	for _, version := range list {
		before := schema(t, db)
		migrateTo(t, db, version)
		after := schema(t, db)
		if cmp.Equal(before, after) {
			t.Errorf("version %d changes nothing that the comparison sees", version)
		}
		migrateTo(t, db, last)
		if diff := cmp.Diff(before, schema(t, db)); diff != "" {
			t.Errorf("version %d down leaves a difference (-before +after):\n%s", version, diff)
		}
		migrateTo(t, db, version)
		if diff := cmp.Diff(after, schema(t, db)); diff != "" {
			t.Errorf("version %d up again differs (-first +second):\n%s", version, diff)
		}
		last = version
	}
	migrateTo(t, db, 0)
	if left := schema(t, db); len(left) != 1 { // the extension plpgsql
		t.Errorf("version 0 still holds %q", left)
	}
}

func TestMigrateTwiceDoesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.Empty(t)
	from, to, err := facts.Migrate(t.Context(), db.URL)
	if err != nil || from != 0 || to < 7 {
		t.Fatalf("from %d to %d: %v", from, to, err)
	}
	again, still, err := facts.Migrate(t.Context(), db.URL)
	if err != nil || again != to || still != to {
		t.Fatalf("second time from %d to %d: %v", again, still, err)
	}
}

func TestMigrateFromManyProcesses(t *testing.T) {
	t.Parallel()
	db := storetest.Empty(t)
	answers := make(chan error, 4)
	for range cap(answers) {
		go func() {
			_, _, err := facts.Migrate(t.Context(), db.URL)
			answers <- err
		}()
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// The connection is cut after the DDL and before its version row: for every version.
func TestTrap_D44_CutBetweenDDLAndVersion(t *testing.T) {
	t.Parallel()
	whole := storetest.New(t)
	want := schema(t, whole)
	db := storetest.Empty(t)
	migrateTo(t, db, 0)
	for _, version := range numbers(t) {
		before := schema(t, db)
		cut(t, db)
		if _, _, err := facts.MigrateTo(t.Context(), db.URL, version); err == nil {
			t.Fatalf("version %d: the cut did not happen", version)
		}
		mend(t, db)
		if diff := cmp.Diff(before, schema(t, db)); diff != "" {
			t.Errorf("version %d left a part behind:\n%s", version, diff)
		}
		migrateTo(t, db, version)
	}
	if diff := cmp.Diff(want, schema(t, db)); diff != "" {
		t.Errorf("the end differs from a run without cuts:\n%s", diff)
	}
}

// cut makes the server end the session that writes a version row. The function lives in a schema of its
// own, out of sight of the comparison.
func cut(t *testing.T, db *storetest.Database) {
	t.Helper()
	execute(t, db, `CREATE SCHEMA cut;
CREATE FUNCTION cut.cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NEW; END $$;
CREATE TRIGGER cut BEFORE INSERT ON goose_db_version FOR EACH ROW EXECUTE FUNCTION cut.cut()`)
}

func mend(t *testing.T, db *storetest.Database) {
	t.Helper()
	execute(t, db, `DROP SCHEMA cut CASCADE`)
}

func execute(t *testing.T, db *storetest.Database, sql string) {
	t.Helper()
	if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateRefusesANewerDatabase(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, known, err := facts.SchemaVersion(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, fmt.Sprintf(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)`, known+2))
	_, _, err = facts.Migrate(t.Context(), db.URL)
	if !errors.Is(err, facts.ErrNewerSchema) || !strings.Contains(err.Error(), fmt.Sprint(known+2)) {
		t.Errorf("got %v, want ErrNewerSchema that names version %d", err, known+2)
	}
	_, _, err = facts.MigrateTo(t.Context(), db.URL, known-1)
	if !errors.Is(err, facts.ErrNewerSchema) {
		t.Errorf("back from a newer one: %v", err)
	}
}

func TestMigrateBadInput(t *testing.T) {
	t.Parallel()
	db := storetest.Empty(t)
	for name, call := range map[string]func() error{
		"negative version": func() error { _, _, err := facts.MigrateTo(t.Context(), db.URL, -1); return err },
		"unknown version":  func() error { _, _, err := facts.MigrateTo(t.Context(), db.URL, 1<<40); return err },
		"bad address":      func() error { _, _, err := facts.Migrate(t.Context(), "postgres://%zz"); return err },
		"nobody there": func() error {
			_, _, err := facts.Migrate(context.Background(), "postgres:///x?host=/nonexistent&sslmode=disable")
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
