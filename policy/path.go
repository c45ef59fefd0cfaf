package policy

// Paths name a place in the document: objects of a list by their code, never by number, so that a
// message, a difference and a form field mean the same place in every version.

func lanePath(code string) string { return "lanes[" + code + "]" }

func accountPath(lane, group string) string { return lanePath(lane) + ".accounts[" + group + "]" }

func groupPath(code string) string { return "pool_groups[" + code + "]" }

func planPath(code string) string { return "plans[" + code + "]" }

func tenantPath(code string) string { return "tenants[" + code + "]" }

func poolPath(key string) string { return "pools[" + key + "]" }

func modelPath(code string) string { return "models[" + code + "]" }

func routePath(key string) string { return "routing[" + key + "]" }

func routeKey(r *RoutingRule) string { return r.Mark + "/" + r.ResourceClass }
