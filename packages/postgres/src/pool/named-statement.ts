import type pg from 'pg';
import { bindMessage, type Value } from './bind-message.ts';
import type { TextRow } from './text-query.ts';

type Callback = (error: Error | null, answered?: NamedStatement) => void;

/** Where pg remembers which statements are prepared on a connection. */
interface Prepared {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements?: Record<string, string>;
}

/**
 * A prepared statement whose columns are read as texts. pg's own `Query` copies its options, asks for a description of the
 * columns and builds a typed result; together these cost as much as the rest of an uncontended lock.
 */
export class NamedStatement implements pg.Submittable {
  /** pg reads `name` and `text` to remember that the statement is prepared. */
  readonly name: string;
  readonly text: string;
  readonly callback: Callback;
  readonly rows: TextRow[] = [];
  readonly #values: readonly Value[];
  #tag = '';

  constructor(name: string, text: string, values: readonly Value[], callback: Callback) {
    this.name = name;
    this.text = text;
    this.callback = callback;
    this.#values = values;
  }

  /** How many rows the statement returned or changed. */
  get count(): number {
    return Number(this.#tag.slice(this.#tag.lastIndexOf(' ') + 1));
  }

  submit(connection: pg.Connection): void {
    const { stream, parsedStatements, submittedNamedStatements } = connection as pg.Connection & Prepared;
    const message = bindMessage(this.name, this.#values);
    if (parsedStatements[this.name] !== undefined) {
      stream.write(message);
      return;
    }
    stream.cork();
    connection.parse({ name: this.name, text: this.text, types: [] }, true);
    if (submittedNamedStatements !== undefined) submittedNamedStatements[this.name] = this.text;
    stream.write(message);
    stream.uncork();
  }

  handleDataRow({ fields }: { readonly fields: TextRow }): void {
    this.rows.push(fields);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#tag = text;
  }

  handleReadyForQuery(): void {
    this.callback(null, this);
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  handleRowDescription(): void {
    // The server sends none: the statement is never described.
  }

  handleEmptyQuery(): void {
    // The server answers so to an empty text, and no statement here is empty.
  }

  handlePortalSuspended(): void {
    // The server suspends a portal only under a limit of rows, and none is set.
  }
}
