// Package storetest gives each test a PostgreSQL database and a Redis key prefix of its own on real
// servers. A database is a clone of a template that is made once per state of migrations/, so a fresh one
// costs some 50 ms. Only tests import it.
//
//	db := storetest.New(t)          // migrated; db.URL, db.Pool
//	db := storetest.Empty(t)        // no tables
//	r := storetest.Redis(t)         // r.URL, r.Prefix
//
// The servers are named by FAIRLANE_TEST_DATABASE_URL and FAIRLANE_TEST_REDIS_URL; `make test` and
// `make services` set them.
package storetest
