package storetest_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"fairlane/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDatabasesAreMigratedAndApart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first, second := storetest.New(t), storetest.New(t)
	if first.Name == second.Name {
		t.Fatal("two tests share a database")
	}
	if _, err := first.Pool.Exec(ctx, `INSERT INTO tenant (tenant_id, code, name, plan_code) VALUES (gen_random_uuid(), 'a', 'A', 'free')`); err != nil {
		t.Fatal(err)
	}
	var there, here int
	if err := first.Pool.QueryRow(ctx, `SELECT count(*) FROM tenant`).Scan(&here); err != nil {
		t.Fatal(err)
	}
	if err := second.Pool.QueryRow(ctx, `SELECT count(*) FROM tenant`).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if here != 1 || there != 0 {
		t.Fatalf("rows: own %d, other's %d; want 1 and 0", here, there)
	}
}

func TestDatabaseIsDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	name := ""
	t.Run("inner", func(t *testing.T) { name = storetest.Empty(t).Name })
	watch := storetest.Empty(t)
	var left int
	if err := watch.Pool.QueryRow(context.Background(), `SELECT count(*) FROM pg_database WHERE datname = $1`, name).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Fatalf("database %s is still there", name)
	}
}

func TestRedisKeysAreRemovedAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var space storetest.RedisSpace
	t.Run("inner", func(t *testing.T) {
		space = storetest.Redis(t)
		client := open(t, space.URL)
		if err := client.Set(ctx, space.Prefix+"k", 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	})
	left, err := open(t, space.URL).Exists(ctx, space.Prefix+"k").Result()
	if err != nil || left != 0 {
		t.Fatalf("keys left: %d, %v", left, err)
	}
}

func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
