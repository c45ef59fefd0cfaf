// Package monitor folds facts into the snapshots that pages and sockets show: one State, read in
// bounded queries, and per topic a numbered snapshot of keyed rows with patches between. It changes
// nothing, decides nothing and knows neither SQL nor HTTP. control/run feeds it, web reads it.
//
// Beside the topics of the whole there are those of single objects, read in one query for all of a kind
// while somebody looks. The words of the kept history (past.go) are here, too; store/facts writes it.
//
// Freshness: hints wake a refresh, at most four a second; without hints PostgreSQL is read at a floor.
// When nobody watches, hints are left to the floor, so that an unwatched platform pays almost nothing.
package monitor
