import type { Broker } from '../../../core/approval/channel.ts';
import { Kernel, type Plugin } from '../../../core/kernel.ts';
import { applyPlugin, definePlugin } from '../../../core/plugin.ts';
import type { BrokerUnderTest } from '../broker-under-test.ts';

export interface BrokerFault {
  readonly fault: string;
  /** The case of the suite that must fail, and how. */
  readonly detectedBy: string;
  readonly failure: RegExp;
  /** How long it is waited for, in milliseconds; default 3,000. */
  readonly patienceMs?: number;
  /** The module of a broker that is wrong between processes. */
  readonly module?: URL;
  /** Other options of the right broker. */
  options?(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Wraps a right broker. */
  apply(broker: Broker, options: Readonly<Record<string, unknown>>): Partial<Broker>;
}

/** The lease of a broker that has one. */
export const LEASE_MS = 500;
/** How long a wrong broker is waited for, in milliseconds. */
const PATIENCE_MS = 3_000;

/** A right broker with a fault. */
export function withBrokerFault(right: BrokerUnderTest, fault: BrokerFault): BrokerUnderTest {
  const { apply, module, patienceMs = PATIENCE_MS, options = (given) => given } = fault;
  const plugin: Plugin = definePlugin({
    name: right.plugin.name,
    apply(kernel) {
      const inner = new Kernel();
      applyPlugin(inner, right.plugin, right.plugin.name);
      kernel.brokers.register(right.type, (options) => {
        const broker = inner.brokers.get(right.type)(options);
        return { ...broker, ...apply(broker, options) };
      });
    },
  });
  return {
    ...right,
    plugin,
    module,
    patienceMs,
    leaseMs: LEASE_MS,
    options: (host, port) => options(right.options(host, port)),
  };
}
