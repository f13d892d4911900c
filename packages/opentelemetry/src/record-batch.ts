import type { Attributes, Histogram } from '@opentelemetry/api';

const SIZE = 64;

/**
 * Keeps measurements of histograms, and records many at once: the SDK takes them one after another in less time than each
 * beside other work. A caller that collects or stops must flush.
 */
export class RecordBatch {
  readonly #histograms: Histogram[] = [];
  readonly #attributes: Attributes[] = [];
  readonly #values = new Float64Array(SIZE);
  #count = 0;

  add(histogram: Histogram, value: number, attributes: Attributes): void {
    const index = this.#count;
    this.#histograms[index] = histogram;
    this.#values[index] = value;
    this.#attributes[index] = attributes;
    this.#count = index + 1;
    if (this.#count === SIZE) this.flush();
  }

  flush(): void {
    const count = this.#count;
    this.#count = 0;
    for (let index = 0; index < count; index += 1)
      this.#histograms[index]?.record(this.#values[index] as number, this.#attributes[index]);
  }
}
