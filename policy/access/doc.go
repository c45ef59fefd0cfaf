// Package access decides who may do what: permissions by name, roles that hold them, grants of roles to
// operators (whole, or limited to lanes and tenants), and one enforcer that denies by default and lets a
// deny win. It decides about permissions, never about addresses: the route table of web names the
// permission of each route and socket topic.
//
// Rules live in PostgreSQL and are written there, with their audit record, by SQL. The enforcer only
// loads: whenever the access version moves it builds a whole new view and swaps it in. What it remembers
// about an operator is kept inside that view, so nothing outlives a change of rights.
package access
