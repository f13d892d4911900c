import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findServer } from '../find-server.mjs';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';

export interface PrometheusOptions {
  /** What is scraped, each `host:port` with the path `/metrics`. */
  readonly targets: readonly string[];
  /** The file with the alerts. */
  readonly ruleFile: string;
  /** How often it scrapes, and evaluates the alerts. */
  readonly everySeconds: number;
}

export interface PrometheusAlert {
  readonly name: string;
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
}

/** A private Prometheus on loopback. */
export class PrometheusServer extends ManagedServer {
  protected readonly title = 'prometheus';
  readonly #options: PrometheusOptions;

  constructor(location: ServerLocation, options: PrometheusOptions) {
    super(location);
    this.#options = options;
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  /** The alerts that are pending or fire now. */
  async alerts(): Promise<PrometheusAlert[]> {
    const { alerts } = await this.#get<{
      alerts: { state: PrometheusAlert['state']; labels: Record<string, string> }[];
    }>('alerts');
    return alerts.map(({ state, labels: { alertname = '', ...labels } }) => ({
      name: alertname,
      state,
      labels,
    }));
  }

  /** The value of a query that gives one series; `undefined` where there is none. */
  async value(query: string): Promise<number | undefined> {
    return (await this.seriesOf(query))[0];
  }

  /** The value of each series that a query gives. */
  async seriesOf(query: string): Promise<number[]> {
    const { result } = await this.#get<{ result: { value: [number, string] }[] }>(
      `query?query=${encodeURIComponent(query)}`,
    );
    return result.map(({ value: [, text] }) => Number(text));
  }

  async #get<T>(what: string): Promise<T> {
    const response = await fetch(`${this.url}/api/v1/${what}`, { signal: AbortSignal.timeout(5_000) });
    return ((await response.json()) as { data: T }).data;
  }

  protected override async prepare(): Promise<void> {
    const { targets, ruleFile, everySeconds } = this.#options;
    const config = {
      global: { scrape_interval: `${everySeconds}s`, evaluation_interval: `${everySeconds}s` },
      rule_files: [ruleFile],
      scrape_configs: [{ job_name: 'application', static_configs: [{ targets }] }],
    };
    // JSON is YAML.
    await writeFile(this.#configFile, JSON.stringify(config));
  }

  protected override program() {
    return {
      command: findServer('prometheus'),
      args: [
        `--config.file=${this.#configFile}`,
        `--storage.tsdb.path=${path.join(this.dir, 'data')}`,
        `--web.listen-address=${this.host}:${this.port}`,
        '--log.level=warn',
      ],
    };
  }

  protected override async isReady(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/-/ready`, { signal: AbortSignal.timeout(1_000) });
      return response.ok;
    } catch {
      return false;
    }
  }

  get #configFile(): string {
    return path.join(this.dir, 'prometheus.yml');
  }
}

/** Starts Prometheus on a free port. */
export function startPrometheus(options: PrometheusOptions): Promise<PrometheusServer> {
  return startServer({ label: 'prometheus' }, (location) => new PrometheusServer(location, options));
}
