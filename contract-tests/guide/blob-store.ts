import { buffer } from 'node:stream/consumers';
import type { ContainerClient, RestError } from '@azure/storage-blob';
import type {
  RecordStore,
  RecordWrite,
  RecordWritten,
  RequestLimit,
  StoredRecord,
} from '@locks/record-protocol';

/** A key may be any text, the name of a blob may not: no dot at the end. Keys with the same beginning have names with the same. */
const nameOf = (key: string): string => Buffer.from(key).toString('base64url');
const CONFLICTS = ['BlobAlreadyExists', 'ConditionNotMet', 'BlobNotFound'];

export class BlobStore implements RecordStore {
  readonly name = 'azure-blob';
  readonly maxValueBytes = 1_000_000; // Azure takes far more, but a queue is read and written as a whole
  readonly clock = { stepMs: 1_000, skewMs: 1_000 }; // every answer has the header Date
  readonly #container: ContainerClient;

  constructor(container: ContainerClient) {
    this.#container = container;
  }

  async read(keys: readonly string[], { signal }: RequestLimit) {
    const answers = await Promise.all(keys.map((key) => this.#readOne(nameOf(key), signal)));
    return { records: answers.map(({ record }) => record), now: Math.min(...answers.map(({ now }) => now)) };
  }

  async #readOne(name: string, abortSignal: AbortSignal): Promise<{ record?: StoredRecord; now: number }> {
    try {
      const found = await this.#container.getBlobClient(name).download(0, undefined, { abortSignal });
      const value = await buffer(found.readableStreamBody as NodeJS.ReadableStream);
      return { record: { value, version: found.etag as string }, now: Number(found.date) };
    } catch (error) {
      if ((error as RestError).code === 'BlobNotFound') return { now: dateOf(error as RestError) };
      throw error;
    }
  }

  async write(
    { key, value, ifVersion }: RecordWrite,
    { signal: abortSignal }: RequestLimit,
  ): Promise<RecordWritten> {
    const blob = this.#container.getBlockBlobClient(nameOf(key));
    const conditions = ifVersion === undefined ? { ifNoneMatch: '*' } : { ifMatch: String(ifVersion) };
    try {
      const done =
        value === undefined
          ? { etag: '', ...(await blob.delete({ conditions, abortSignal })) }
          : await blob.upload(value, value.length, { conditions, abortSignal });
      return { status: 'written', version: done.etag as string, now: Number(done.date) };
    } catch (error) {
      const { code = '' } = error as RestError;
      if (CONFLICTS.includes(code)) return { status: 'conflict', now: dateOf(error as RestError) };
      throw error;
    }
  }

  async *list(prefix: string, { signal: abortSignal }: RequestLimit): AsyncIterable<StoredRecord> {
    const beginning = nameOf(prefix).slice(0, -1); // the last character also has bits of what follows
    for await (const { name } of this.#container.listBlobsFlat({ prefix: beginning, abortSignal })) {
      const { record } = await this.#readOne(name, abortSignal);
      if (record !== undefined) yield record;
    }
  }

  isRetryable(error: unknown): boolean {
    const { name, statusCode = 503 } = error as Partial<RestError>; // no status: no answer came
    return name === 'AbortError' || (name === 'RestError' && (statusCode === 429 || statusCode >= 500));
  }

  async close(): Promise<void> {} // the client is the user's
}

const dateOf = ({ response }: RestError): number => Date.parse(response?.headers.get('date') ?? '');
