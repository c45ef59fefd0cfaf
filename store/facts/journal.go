package facts

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
)

// journal gathers what a transaction tells the world: task events, outbox rows and notifications.
// Each kind is one statement, whatever its number.
type journal struct {
	eventIDs, eventTasks, eventAttempts []uuid.UUID
	eventTypes, eventFrom, eventTo      []string
	eventActors, eventDetails           []string

	outboxIDs, outboxAggregates             []uuid.UUID
	outboxTopics, outboxGroups, outboxTypes []string
	outboxPayloads                          []string

	hints set[[2]string] // channel, payload
	err   error
}

// event adds a line to a task's history. attempt is zero where there is none; detail is any JSON object.
func (j *journal) event(task, attempt uuid.UUID, kind string, from, to control.TaskState, actor string, detail any) {
	j.eventIDs = append(j.eventIDs, j.newID())
	j.eventTasks, j.eventAttempts = append(j.eventTasks, task), append(j.eventAttempts, attempt)
	j.eventTypes = append(j.eventTypes, kind)
	j.eventFrom, j.eventTo = append(j.eventFrom, string(from)), append(j.eventTo, string(to))
	j.eventActors, j.eventDetails = append(j.eventActors, actor), append(j.eventDetails, j.json(detail))
}

// send adds an outbox row and returns its id to whoever wants it in the payload beforehand.
func (j *journal) send(id uuid.UUID, topic, group, kind string, aggregate uuid.UUID, payload any) {
	j.outboxIDs, j.outboxAggregates = append(j.outboxIDs, id), append(j.outboxAggregates, aggregate)
	j.outboxTopics, j.outboxGroups = append(j.outboxTopics, topic), append(j.outboxGroups, group)
	j.outboxTypes, j.outboxPayloads = append(j.outboxTypes, kind), append(j.outboxPayloads, j.json(payload))
}

// hint adds a notification; the same one goes once.
func (j *journal) hint(channel, payload string) { j.hints.add([2]string{channel, payload}) }

// queueEvent tells the scheduler of the group to look at a task.
func (j *journal) queueEvent(kind string, t *taskRow, version int64) {
	j.send(j.newID(), control.TopicQueue, t.group, kind, t.id, map[string]int64{"version": version})
	j.hint(control.NotifyQueue, t.group)
}

func (j *journal) newID() uuid.UUID {
	id, err := uuid.NewV7()
	if err != nil && j.err == nil {
		j.err = err
	}
	return id
}

func (j *journal) json(v any) string {
	raw, err := json.Marshal(v)
	if err != nil && j.err == nil {
		j.err = fmt.Errorf("journal: %w", err)
	}
	return string(raw)
}

// queue adds the statements that write the journal. Notifications reach listeners at COMMIT only.
func (j *journal) queue(b *pgx.Batch) error {
	if j.err != nil {
		return j.err
	}
	if len(j.eventIDs) > 0 {
		b.Queue(insertEventSQL, j.eventIDs, j.eventTasks, j.eventAttempts, j.eventTypes, j.eventFrom, j.eventTo,
			j.eventActors, j.eventDetails).Exec(ignoreTag)
	}
	if len(j.outboxIDs) > 0 {
		b.Queue(insertOutboxSQL, j.outboxIDs, j.outboxTopics, j.outboxGroups, j.outboxTypes, j.outboxAggregates,
			j.outboxPayloads).Exec(ignoreTag)
	}
	if len(j.hints) > 0 {
		channels, payloads := make([]string, 0, len(j.hints)), make([]string, 0, len(j.hints))
		for h := range j.hints {
			channels, payloads = append(channels, h[0]), append(payloads, h[1])
		}
		b.Queue(`SELECT pg_notify(k.channel, k.payload) FROM unnest($1::text[], $2::text[]) k(channel, payload)`,
			channels, payloads).Exec(ignoreTag)
	}
	return nil
}

const (
	insertEventSQL = `
		INSERT INTO task_event (event_id, task_id, attempt_id, type, from_state, to_state, actor, detail)
		SELECT id, task, nullif(attempt, '00000000-0000-0000-0000-000000000000'), kind, nullif(f, ''), nullif(t, ''), actor, detail::jsonb
		FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
		     k(id, task, attempt, kind, f, t, actor, detail)`

	insertOutboxSQL = `
		INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id, payload)
		SELECT id, topic, grp, kind, aggregate, payload::jsonb
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[])
		     k(id, topic, grp, kind, aggregate, payload)`
)
