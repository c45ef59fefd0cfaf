package facts

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/monitor"
)

const sqlTenantCard = `
	SELECT t.tenant_id, t.code, t.name, lower(t.name), t.plan_code, t.status, coalesce(p.service_class, ''), coalesce(p.weight, 0)::bigint,
	       coalesce(r.running_tasks, 0), coalesce(r.running_units, 0), coalesce(r.queued_tasks, 0), coalesce(r.queued_units, 0),
	       (SELECT coalesce(sum(o.weight), 0)::bigint FROM tenant_scheduling_policy o JOIN tenant n USING (tenant_id)
	        WHERE o.service_class = p.service_class AND n.status = 'ACTIVE')
	FROM tenant t
	LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	LEFT JOIN tenant_runtime r USING (tenant_id)
	WHERE t.code = $1 OR t.tenant_id = $2
	ORDER BY t.code = $1 DESC LIMIT 1`

// TenantCard reads one tenant by its code, else by its id; control.CodeNotFound when there is none.
func (m *Monitor) TenantCard(ctx context.Context, ref string) (monitor.TenantCard, error) {
	id, err := uuid.Parse(ref)
	if err != nil {
		id = uuid.Nil
	}
	var c monitor.TenantCard
	if storableText(ref, maxMessage) != ref {
		return c, control.Errorf(control.CodeNotFound, "there is no such tenant") // no name can hold that
	}
	err = m.db.pool.QueryRow(ctx, sqlTenantCard, ref, id).Scan(&c.ID, &c.Code, &c.Name, &c.SortName, &c.Plan, &c.Status,
		&c.Lane, &c.Weight, &c.Running, &c.RunningUnits, &c.QueuedTasks, &c.QueuedMilli, &c.LaneWeights)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, control.Errorf(control.CodeNotFound, "there is no such tenant")
	}
	return c, away(err)
}
