// Package schedule is the loop: heads → snapshot → plan → claim → requeue, by one leased runner per
// pool group, woken by events and idle without work. It decides nothing itself: control/plan does.
package schedule
