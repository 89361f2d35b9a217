"""SQL of model usage: the numbers outlive their thread, the names do not."""

ADD_FOREIGN_KEY = """
ALTER TABLE mastra_memory_modelusage ADD CONSTRAINT mastra_usage_thread_fk
    FOREIGN KEY (thread_id, resource_id) REFERENCES mastra_memory_thread (id, resource_id)
    ON UPDATE CASCADE ON DELETE SET NULL
"""
DROP_FOREIGN_KEY = "ALTER TABLE mastra_memory_modelusage DROP CONSTRAINT mastra_usage_thread_fk"
