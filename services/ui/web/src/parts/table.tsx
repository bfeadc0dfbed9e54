import type { ReactNode } from 'react';

export interface Column<Row> {
  readonly label: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers stand at the end of their column. */
  readonly align?: 'end';
  /** Nothing to see but buttons: the label is for screen readers. */
  readonly isActions?: boolean;
}

export interface TableProps<Row> {
  /** What the rows are, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/**
 * Rows of a list that the service sorts and pages. On a narrow screen each row is a small card, with the column's name
 * before each value; the roles stay those of a table, which browsers drop with its layout.
 */
export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>): ReactNode {
  return (
    <div className="overflow-x-auto rounded-xl border bg-card">
      <table role="table" className="w-full text-sm max-sm:block">
        <caption className="sr-only">{caption}</caption>
        <thead role="rowgroup" className="max-sm:sr-only">
          <tr role="row" className="border-b bg-muted/50 text-left text-xs text-muted-foreground">
            {columns.map(({ label, align, isActions = false }) => (
              <th key={label} role="columnheader" scope="col" className={`px-3 py-2 font-medium ${align === 'end' ? 'text-right' : ''}`}>
                <span className={isActions ? 'sr-only' : ''}>{label}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" className="max-sm:block">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row" className="border-b last:border-b-0 max-sm:block max-sm:px-3 max-sm:py-2 sm:hover:bg-muted/40">
              {columns.map(({ label, cell, align, isActions = false }) => (
                <td
                  key={label}
                  role="cell"
                  data-label={isActions ? undefined : label}
                  className={`align-top wrap-break-word max-sm:flex max-sm:gap-3 max-sm:py-0.5 max-sm:before:w-28 max-sm:before:shrink-0 max-sm:before:text-xs max-sm:before:leading-6 max-sm:before:text-muted-foreground max-sm:before:content-[attr(data-label)] sm:px-3 ${isActions ? 'sm:py-0.5' : 'sm:py-2'} ${align === 'end' ? 'tabular-nums sm:text-right' : ''}`}
                >
                  <div className="min-w-0">{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
