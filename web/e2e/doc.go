// Package e2e holds the browser tests: the real product, started in-process on a database of its own with
// its simulated provider as a child, and Chromium in front of it. Each expectation of the console has a
// test named after it (E01 …). It exports nothing.
//
// One Chromium serves the whole package; every tab has a browser context of its own, so nobody shares
// cookies. A tab fails its test when the page breaks its content security policy, writes an error to the
// console or throws (E24).
//
// Pictures of the pages go to the folder that FAIRLANE_TEST_ARTIFACTS names, else to .build/e2e.
package e2e
