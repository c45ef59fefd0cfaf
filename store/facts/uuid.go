package facts

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerUUID teaches a connection to carry uuid.UUID as sixteen bytes. Without it each id goes
// through its text form and an error that is thrown away, which was most of what a claim cost in Go.
func registerUUID(_ context.Context, conn *pgx.Conn) error {
	m := conn.TypeMap()
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUIDEncode}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{wrapUUIDScan}, m.TryWrapScanPlanFuncs...)
	return nil
}

// wireUUID is a uuid.UUID that speaks pgtype's language.
type wireUUID uuid.UUID

// UUIDValue implements pgtype.UUIDValuer.
func (u wireUUID) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: u, Valid: true}, nil }

// ScanUUID implements pgtype.UUIDScanner. NULL has no place in a uuid.UUID.
func (u *wireUUID) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return errors.New("cannot scan NULL into a uuid.UUID")
	}
	*u = v.Bytes
	return nil
}

type uuidEncode struct{ next pgtype.EncodePlan }

func (p *uuidEncode) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *uuidEncode) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(wireUUID(value.(uuid.UUID)), buf)
}

func wrapUUIDEncode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if id, ok := value.(uuid.UUID); ok {
		return &uuidEncode{}, wireUUID(id), true
	}
	return nil, nil, false
}

type uuidScan struct{ next pgtype.ScanPlan }

func (p *uuidScan) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *uuidScan) Scan(src []byte, dst any) error {
	return p.next.Scan(src, (*wireUUID)(dst.(*uuid.UUID)))
}

func wrapUUIDScan(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if id, ok := target.(*uuid.UUID); ok {
		return &uuidScan{}, (*wireUUID)(id), true
	}
	return nil, nil, false
}
