import { cassandraBench } from './cassandra.ts';
import type { BenchEngine } from './contender.ts';
import { dynamodbBench } from './dynamodb.ts';
import { mongodbBench } from './mongodb.ts';

export const ENGINES: Readonly<Record<string, () => BenchEngine | Promise<BenchEngine>>> = {
  mongodb: mongodbBench,
  dynamodb: dynamodbBench,
  cassandra: cassandraBench,
};
