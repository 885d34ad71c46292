package store

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Dataset is a table that a person uploaded.
type Dataset struct {
	bun.BaseModel `bun:"table:datasets"`

	ID          string      `bun:"id,pk"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	Name        string      `bun:"name"`
	Columns     []string    `bun:"columns"`
	Rows        int         `bun:"row_count"`
	Bytes       int64       `bun:"bytes"`
	Digest      string      `bun:"digest"`
	CreatedBy   core.Actor  `bun:"created_by"`
	CreatedAt   Time        `bun:"created_at"`
}

// DatasetRow is one row of a dataset, counted from 0. Data is an object by column.
type DatasetRow struct {
	bun.BaseModel `bun:"table:dataset_rows"`

	DatasetID string `bun:"dataset_id,pk"`
	N         int    `bun:"n,pk"`
	Data      JSON   `bun:"data"`
}

// datasetBatch bounds the length of one statement.
const datasetBatch = 500

// Dataset reads a dataset without its rows.
func (r Reader) Dataset(ctx context.Context, ws WorkspaceID, id string) (*Dataset, error) {
	return byID[Dataset](ctx, r, "dataset", ws, id)
}

// ListDatasets lists datasets, newest first.
func (r Reader) ListDatasets(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Dataset], error) {
	l := listing[Dataset]{noun: "dataset", key: "id", since: "created_at", keyOf: func(d *Dataset) string { return d.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery { return s.Where("workspace_id = ?", ws) })
}

// DatasetRows reads up to limit rows of a dataset, from row number from on.
func (r Reader) DatasetRows(ctx context.Context, ws WorkspaceID, id string, from, limit int) ([]DatasetRow, error) {
	if _, err := r.Dataset(ctx, ws, id); err != nil {
		return nil, err
	}
	return all[DatasetRow](ctx, r, "dataset", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("dataset_id = ?", id).Where("n >= ?", from).Order("n").Limit(int64(limit))
	})
}

// InsertDataset adds a dataset with its rows, which it numbers.
func (tx *Tx) InsertDataset(ctx context.Context, d *Dataset, rows []JSON) error {
	if err := insert(ctx, tx, "dataset", d); err != nil {
		return err
	}
	for start := 0; start < len(rows); start += datasetBatch {
		part := rows[start:min(start+datasetBatch, len(rows))]
		batch := make([]DatasetRow, len(part))
		for i, data := range part {
			batch[i] = DatasetRow{DatasetID: d.ID, N: start + i, Data: data}
		}
		if _, err := tx.w(ctx).NewInsert().Model(&batch).Exec(ctx); err != nil {
			return failed("add dataset rows", err)
		}
	}
	return nil
}

// DeleteDataset removes a dataset and its rows.
func (tx *Tx) DeleteDataset(ctx context.Context, ws WorkspaceID, id string) error {
	if err := remove(ctx, "dataset", id, tx.w(ctx).NewDelete().Model((*Dataset)(nil)).Where("id = ?", id).Where("workspace_id = ?", ws)); err != nil {
		return err
	}
	_, err := purge(ctx, "dataset", tx.w(ctx).NewDelete().Model((*DatasetRow)(nil)).Where("dataset_id = ?", id))
	return err
}
