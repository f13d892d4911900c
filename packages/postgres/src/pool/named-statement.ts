import type pg from 'pg';
import { bindMessage, type Value } from './bind-message.ts';

type Texts = readonly (string | null)[];
type Done = (error: Error | null, answered?: NamedStatement) => void;

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
  readonly rows: Texts[] = [];
  readonly #values: readonly Value[];
  #tag = '';

  constructor(name: string, text: string, values: readonly Value[], callback: Done) {
    this.name = name;
    this.text = text;
    this.callback = callback;
    this.#values = values;
  }

  /** How many rows it gave or changed. */
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

  handleDataRow({ fields }: { readonly fields: Texts }): void {
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
    // Not asked for.
  }

  handleEmptyQuery(): void {
    // There is no such statement here.
  }

  handlePortalSuspended(): void {
    // All rows are fetched at once.
  }
}
