// Package estimate is the cost model: what a request is expected to take in slot units, seconds and
// money, the fairness milli-units that follow, and what is learnt from what jobs really took.
//
// Words. A prior is what the policy's catalogue says of a model. A Sample is what one job took; a Model
// folds samples, one after the other, into one cell for each Key; what its cells say is published as a
// numbered version, and a Book is one such version whole. An estimate is the prior and the history
// together: the prior weighs as much as PriorTasks observations. A Factor is what one tenant's tasks use
// over what is estimated for such tasks; it is part of fairness, and stretches the P95 of a tenant whose
// tasks take longer than others'. Settle says what the end of an attempt corrects in what its claim was
// charged.
//
// Everything is pure, without I/O and without a clock, but for Active, which follows the
// published versions behind its port. It is not a meter: what a job really took is recorded by its completion.
package estimate
