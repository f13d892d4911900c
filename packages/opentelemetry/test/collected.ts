import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';

type Attributes = Readonly<Record<string, unknown>>;

/** A meter provider of the SDK whose metrics a test reads. */
export class CollectedMetrics implements AsyncDisposable {
  readonly #exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: this.#exporter,
    exportIntervalMillis: 600_000,
  });
  readonly provider = new MeterProvider({ readers: [this.#reader] });

  /** The value of a counter or gauge whose series has these attributes; 0 without such a series. */
  async value(name: string, attributes: Attributes = {}): Promise<number> {
    const points = await this.#points<number>(name, attributes);
    return points.reduce((sum, { value }) => sum + value, 0);
  }

  async histogram(name: string, attributes: Attributes = {}): Promise<Histogram | undefined> {
    return (await this.#points<Histogram>(name, attributes))[0]?.value;
  }

  async attributesOf(name: string): Promise<Attributes[]> {
    return (await this.#points(name, {})).map((point) => point.attributes);
  }

  /** Everything that was exported, as text. */
  async text(): Promise<string> {
    await this.#collect();
    return JSON.stringify(this.#exporter.getMetrics());
  }

  /** The units of all metrics that have a series, by their names. */
  async units(): Promise<ReadonlyMap<string, string>> {
    return new Map((await this.#metrics()).map(({ descriptor: { name, unit } }) => [name, unit]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider.shutdown();
  }

  async #points<T>(name: string, attributes: Attributes): Promise<DataPoint<T>[]> {
    const found = (await this.#metrics()).find(({ descriptor }) => descriptor.name === name);
    const points = (found?.dataPoints ?? []) as DataPoint<T>[];
    return points.filter((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
    );
  }

  async #metrics() {
    await this.#collect();
    const exported = this.#exporter.getMetrics().at(-1);
    return exported?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? [];
  }

  async #collect(): Promise<void> {
    this.#exporter.reset();
    await this.#reader.forceFlush();
  }
}
