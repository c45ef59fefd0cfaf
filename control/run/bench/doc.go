// Package bench measures parts of the product, each beside a baseline in the same run, since machines
// differ and only ratios count. It fills its own database and never touches one with real data.
// control/run starts what it measures.
package bench
