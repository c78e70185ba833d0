-- How the last answer began that a handler gave when it did not take the fact.
ALTER TABLE deliveries ADD COLUMN answer TEXT;
