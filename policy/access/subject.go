package access

import (
	"context"

	"github.com/google/uuid"

	"fairlane/control"
)

// Subject is the signed-in operator of one request, with the rights it had when the request came in.
type Subject struct {
	Operator uuid.UUID
	Login    string
	Name     string
	Session  string // hash of the session's token, for asking later whether it still lives
	Rights   Rights
}

type subjectKey struct{}
type actorKey struct{}

// WithSubject returns ctx carrying the signed-in operator.
func WithSubject(ctx context.Context, s Subject) context.Context {
	return context.WithValue(ctx, subjectKey{}, s)
}

// SubjectOf returns the signed-in operator of ctx.
func SubjectOf(ctx context.Context) (Subject, bool) {
	s, ok := ctx.Value(subjectKey{}).(Subject)
	return s, ok
}

// WithActor returns ctx carrying who acts, for audit records.
func WithActor(ctx context.Context, a control.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who acts in ctx; a nameless one when nobody is known.
func ActorOf(ctx context.Context) control.Actor {
	a, _ := ctx.Value(actorKey{}).(control.Actor)
	return a
}

// Require returns CodeForbidden unless the operator of ctx holds the permission for the object.
func Require(ctx context.Context, p Permission, o Object) error {
	s, ok := SubjectOf(ctx)
	if !ok {
		return control.Errorf(control.CodeUnauthorized, "nobody is signed in")
	}
	if !s.Rights.MayOn(p, o) {
		return control.Errorf(control.CodeForbidden, "the permission %s is missing here", p)
	}
	return nil
}
