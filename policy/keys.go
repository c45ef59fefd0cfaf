package policy

// Keys of the messages beside fields. Each stands for one rule; catalogues have all of them in every
// language, with the arguments that MessageArgs names.
const (
	KeyRange             = "range"              // a number outside of its range
	KeyNotANumber        = "not_a_number"       // NaN, infinite, or text that is none
	KeyNotWhole          = "not_whole"          // a fraction or exponent where whole numbers are counted
	KeyNegative          = "negative"           //
	KeyTooLarge          = "too_large"          // beyond every number that can be kept
	KeyFullWidth         = "full_width_digits"  // １２ for 12
	KeyRequired          = "required"           // empty
	KeyNotABool          = "not_a_bool"         //
	KeyControlCharacters = "control_characters" //
	KeyCodeCharacters    = "code_characters"    //
	KeyTooLong           = "too_long"           //
	KeyTooMany           = "too_many"           //
	KeyDuplicate         = "duplicate"          // the same code or key twice
	KeyUnknown           = "unknown"            // refers to what is not there
	KeyUnknownField      = "unknown_field"      // no such setting, or not one that can be edited
	KeyNotOneOf          = "not_one_of"         //
	KeyNotADate          = "not_a_date"         //
	KeyCycle             = "cycle"              // cap groups that contain each other
	KeyNotACapGroup      = "not_a_cap_group"    // a parent that is a leaf pool
	KeySchema            = "schema"             // written by a newer build
	KeySumOverCapacity   = "sum_over_capacity"  // lanes hold more of a group than there is
	KeyReservesOverLane  = "reserves_over_lane" // tenants hold more of a lane than it keeps beside its largest task
	KeyShareBelowTask    = "share_below_task"   // reserve + burst below the largest task
	KeyDemandOverPools   = "demand_over_pools"  // no pool is large enough for one task of the model
	KeyNoPool            = "no_pool"            // an enabled model that no pool serves
	KeyLaneCannotRun     = "lane_cannot_run"    // a lane to which tasks of the model go, but without an account where it fits
	KeyCostRange         = "cost_range"         // the estimated cost of one task
	KeyP95BelowMean      = "p95_below_mean"     //
	KeyPlanInUse         = "plan_in_use"        // tenants are on a plan that is not there
	KeyCodeMismatch      = "code_mismatch"      // an override whose code is not its tenant's
	KeyHeadroomOverLane  = "headroom_over_lane" // more headroom than reserve
	KeyLendableOverLane  = "lendable_over_lane" // more is lent than reserve less headroom
	KeyLendsToItself     = "lends_to_itself"    //
	KeyLendsElsewhere    = "lends_elsewhere"    // to a lane that has no account in the pool group
	KeyNoBorrowTimeout   = "no_borrow_timeout"  // lends without a promise of when it is back
	KeyEarmarkBelowP95   = "earmark_below_p95"  // an earmark would end before the pool's slowest task
	KeyMinimumsOverPool  = "minimums_over_pool" // lanes keep more of a pool than it has
	KeyMinimumNotTaken   = "minimum_not_taken"  // kept for a lane that may not run in the pool
	KeyNotAMinimum       = "not_a_minimum"      // not a lane and its units
	KeyPoolsKept         = "pools_kept"         // a lane to which tasks of the model go finds only pools that are kept for others
	KeyTenantsKeptOut    = "tenants_kept_out"   // every pool of the model is dedicated, to other tenants than may use it
	KeyMoreErrors        = "more_errors"        // the list was cut
	KeyReasonRequired    = "reason_required"    //
	KeyMoved             = "moved"              // another version was published meanwhile
	KeyNothingChanged    = "nothing_changed"    //
	KeyEditedTwice       = "edited_twice"       // one form, one field, two values
	KeyLaneInUse         = "lane_in_use"        // tasks are queued in a lane that would be removed
	KeyWrongType         = "wrong_type"         // JSON of another type
	KeyMissing           = "missing"            // a JSON key that is not there
	KeyUnknownKey        = "unknown_key"        // a JSON key that nothing reads
	KeyDuplicateKey      = "duplicate_key"      // a JSON key twice in one object
	KeyNull              = "null"               //
	KeyTooDeep           = "too_deep"           //
	KeyBadJSON           = "bad_json"           //
	KeyTrailingData      = "trailing_data"      //
	KeyBadText           = "bad_text"           // not UTF-8
)

// MessageArgs names the arguments of every message key.
var MessageArgs = map[string][]string{
	KeyRange:             {"value", "min", "max", "unit"},
	KeyNotANumber:        {"value"},
	KeyNotWhole:          {"value"},
	KeyNegative:          {"value"},
	KeyTooLarge:          {"value", "max"},
	KeyFullWidth:         {"value"},
	KeyRequired:          {},
	KeyNotABool:          {"value"},
	KeyControlCharacters: {},
	KeyCodeCharacters:    {"value"},
	KeyTooLong:           {"length", "max"},
	KeyTooMany:           {"count", "max"},
	KeyDuplicate:         {"value"},
	KeyUnknown:           {"value"},
	KeyUnknownField:      {"value"},
	KeyNotOneOf:          {"value", "allowed"},
	KeyNotADate:          {"value"},
	KeyCycle:             {"value"},
	KeyNotACapGroup:      {"value"},
	KeySchema:            {"value", "max"},
	KeySumOverCapacity:   {"reserved", "capacity", "over", "unit", "fields"},
	KeyReservesOverLane:  {"reserved", "lane_reserved", "largest_task", "over", "unit"},
	KeyShareBelowTask:    {"reserved", "burst", "largest_task", "missing", "unit"},
	KeyDemandOverPools:   {"demand", "largest_pool", "unit"},
	KeyNoPool:            {},
	KeyLaneCannotRun:     {"model", "demand", "unit"},
	KeyCostRange:         {"value", "min", "max", "unit"},
	KeyP95BelowMean:      {"p95", "mean", "unit"},
	KeyPlanInUse:         {"tenants", "first"},
	KeyCodeMismatch:      {"value", "expected"},
	KeyHeadroomOverLane:  {"headroom", "reserved", "over", "unit"},
	KeyLendableOverLane:  {"lendable", "reserved", "headroom", "over", "unit"},
	KeyLendsToItself:     {"value"},
	KeyLendsElsewhere:    {"value", "group"},
	KeyNoBorrowTimeout:   {"lendable", "unit"},
	KeyEarmarkBelowP95:   {"value", "p95", "pool", "unit"},
	KeyMinimumsOverPool:  {"minimums", "capacity", "over", "unit"},
	KeyMinimumNotTaken:   {"value"},
	KeyNotAMinimum:       {"value"},
	KeyPoolsKept:         {"model", "demand", "room", "unit"},
	KeyTenantsKeptOut:    {"tenants", "first"},
	KeyMoreErrors:        {"count"},
	KeyReasonRequired:    {},
	KeyMoved:             {"base", "current"},
	KeyNothingChanged:    {},
	KeyEditedTwice:       {},
	KeyLaneInUse:         {"tasks"},
	KeyWrongType:         {"expected"}, // object, list, text, switch, number, whole, id
	KeyMissing:           {},
	KeyUnknownKey:        {},
	KeyDuplicateKey:      {},
	KeyNull:              {},
	KeyTooDeep:           {"max"},
	KeyBadJSON:           {"offset"},
	KeyTrailingData:      {"offset"},
	KeyBadText:           {"offset"},
}
