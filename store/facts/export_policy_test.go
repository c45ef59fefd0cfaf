package facts

// AppendAudits is what changing transactions call, for tests that append many events in one.
var AppendAudits = appendAudits
