import type pg from 'pg';

type Texts = readonly (string | null)[];
type Done = (error: Error | null, rows?: Texts[]) => void;

/** What pg keeps of a connection's prepared statements. */
interface Prepared {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements?: Record<string, string>;
}

/**
 * A prepared statement whose few columns are read as texts: pg's own `Query` without the copy of its options, the
 * description of columns and the typed result, which together cost as much as the rest of an uncontended lock.
 */
export class NamedStatement implements pg.Submittable {
  /** The client marks the name as prepared by these two. */
  readonly name: string;
  readonly text: string;
  readonly callback: Done;
  readonly #values: string[];
  readonly #rows: Texts[] = [];

  constructor(name: string, text: string, values: readonly unknown[], callback: Done) {
    this.name = name;
    this.text = text;
    this.callback = callback;
    this.#values = values.map(String);
  }

  submit(connection: pg.Connection): void {
    const { parsedStatements, submittedNamedStatements } = connection as pg.Connection & Prepared;
    connection.stream.cork();
    try {
      if (parsedStatements[this.name] === undefined) {
        connection.parse({ name: this.name, text: this.text, types: [] }, true);
        if (submittedNamedStatements !== undefined) submittedNamedStatements[this.name] = this.text;
      }
      connection.bind({ statement: this.name, values: this.#values }, true);
      connection.execute({}, true);
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
  }

  handleDataRow({ fields }: { readonly fields: Texts }): void {
    this.#rows.push(fields);
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#rows);
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  handleRowDescription(): void {
    // Not asked for.
  }

  handleCommandComplete(): void {
    // The end is told by handleReadyForQuery.
  }

  handleEmptyQuery(): void {
    // There is no such statement here.
  }

  handlePortalSuspended(): void {
    // All rows are fetched at once.
  }
}
