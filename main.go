// Command fairlane schedules AI video jobs of many tenants over third-party providers.
package main

import (
	"os"

	"fairlane/control/run"
)

func main() { os.Exit(run.Main(os.Args[1:], os.Stdout, os.Stderr)) }
