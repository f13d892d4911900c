import {
  clockOf,
  type RecordClock,
  type RecordsRead,
  type RecordStore,
  type RecordWrite,
  type RecordWritten,
  type RequestLimit,
  type StoredRecord,
} from '@locks/record-protocol';
import { type KubeAnswer, KubeApi, type KubeRequest } from './kube-api.ts';
import { explained, isRetryableError, KubeStatusError } from './kube-error.ts';
import { labelValue, leaseName } from './lease-name.ts';
import {
  AREA,
  keyOf,
  type LeaseObject,
  type LeaseList,
  leaseOf,
  preconditionsOf,
  recordOf,
  storedIn,
  versionOf,
} from './lease-record.ts';
import { LeaseWatch } from './lease-watch.ts';
import type { CheckedKubernetesOptions } from './options.ts';

const PAGE = '250';
/** `Date` has whole seconds. */
const STEP_MS = 1_000;

/** Records as Leases of a namespace. */
export class LeaseStore implements RecordStore {
  readonly name = 'kubernetes';
  /** The annotations of an object may have 256 KiB together; a value that is no text takes a third more in base64. */
  readonly maxValueBytes = 190_000;
  /** Changes are told by a watch. */
  readonly pace = { minPollMs: 50, maxPollMs: 3_000, waiterTtlMs: 5_000 };
  readonly clock: RecordClock;
  readonly #api: KubeApi;
  readonly #namespace: string;
  readonly #prefix: string;
  readonly #path: string;
  /** By their areas. */
  readonly #watches = new Map<string, LeaseWatch>();

  constructor(options: CheckedKubernetesOptions) {
    const { kubeConfig, namespace, prefix } = options;
    this.clock = clockOf(options, STEP_MS);
    this.#api = new KubeApi(kubeConfig);
    this.#namespace = namespace;
    this.#prefix = prefix;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const answers = await Promise.all(keys.map((key) => this.#readOne(key, limit)));
    return { records: answers.map(({ record }) => record), ...told(answers[0]?.now) };
  }

  async write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    try {
      return await this.#write(write, limit);
    } catch (error) {
      const { status, now } = error instanceof KubeStatusError ? error : { status: 0, now: undefined };
      if (status === 409) return { status: 'conflict', ...told(now) };
      if (status === 404 && write.ifVersion !== undefined)
        return { status: 'conflict', present: 'absent', ...told(now) };
      throw explained(error, this.#namespace);
    }
  }

  async *list(prefix: string, limit: RequestLimit): AsyncIterable<StoredRecord> {
    const isOfOneArea = prefix.startsWith(this.#prefix) && prefix.includes('/', this.#prefix.length);
    const labelSelector = isOfOneArea ? `${AREA}=${this.#areaLabel(prefix)}` : AREA;
    let next: string | undefined;
    do {
      const query = { labelSelector, limit: PAGE, ...(next && { continue: next }) };
      const { body: list } = await this.#send<LeaseList>({ method: 'GET', path: this.#path, query }, limit);
      for (const lease of list.items) {
        const record = keyOf(lease)?.startsWith(prefix) === true ? storedIn(lease) : undefined;
        if (record !== undefined) yield record;
      }
      next = list.metadata.continue;
    } while (next);
  }

  watch(key: string, changed: () => void): () => void {
    return this.#watchOf(key).listen(leaseName(key), changed);
  }

  isRetryable(error: unknown): boolean {
    return isRetryableError(error);
  }

  connectionError(): unknown {
    return this.#api.connectionError;
  }

  async close(): Promise<void> {
    for (const watch of this.#watches.values()) watch.close();
  }

  async #readOne(
    key: string,
    limit: RequestLimit,
  ): Promise<{ readonly record: StoredRecord | undefined; readonly now: number | undefined }> {
    const name = leaseName(key);
    try {
      // Without a resource version a read is answered from etcd, never from a cache of the API server.
      const path = `${this.#path}/${name}`;
      const { body: lease, now } = await this.#send<LeaseObject>({ method: 'GET', path }, limit);
      return { record: recordOf(lease, key, this.#namespace), now };
    } catch (error) {
      if (error instanceof KubeStatusError && error.isAbsent(name))
        return { record: undefined, now: error.now };
      throw explained(error, this.#namespace);
    }
  }

  async #write({ key, value, ifVersion }: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const path = `${this.#path}/${leaseName(key)}`;
    if (value === undefined) {
      if (ifVersion === undefined) throw new RangeError('a record is deleted in a version');
      const body = { preconditions: preconditionsOf(ifVersion) };
      const { now } = await this.#send({ method: 'DELETE', path, body }, limit);
      return { status: 'written', version: ifVersion, ...told(now) };
    }
    const body = leaseOf(key, this.#areaLabel(key), value, ifVersion);
    const { body: lease, now } =
      ifVersion === undefined
        ? await this.#send<LeaseObject>({ method: 'POST', path: this.#path, body }, limit)
        : await this.#send<LeaseObject>({ method: 'PUT', path, body }, limit);
    return { status: 'written', version: versionOf(lease), ...told(now) };
  }

  async #send<T>(request: Omit<KubeRequest, 'signal'>, { signal }: RequestLimit): Promise<KubeAnswer<T>> {
    return await this.#api.send<T>({ ...request, signal });
  }

  #watchOf(key: string): LeaseWatch {
    const label = this.#areaLabel(key);
    const known = this.#watches.get(label);
    if (known !== undefined) return known;
    const watch = new LeaseWatch(this.#api, this.#path, `${AREA}=${label}`);
    this.#watches.set(label, watch);
    return watch;
  }

  /** Records are watched and listed with those whose keys have the same first word after the prefix: locks without heartbeats. */
  #areaLabel(key: string): string {
    const [word = ''] = key.slice(this.#prefix.length).split('/');
    return labelValue(this.#prefix + word);
  }
}

function told(now: number | undefined): { readonly now?: number } {
  return now === undefined ? {} : { now };
}
