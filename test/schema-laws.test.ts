import { schemaLaws } from './kit/schema-laws.ts';
import { test } from './kit/test.ts';

schemaLaws(test);
